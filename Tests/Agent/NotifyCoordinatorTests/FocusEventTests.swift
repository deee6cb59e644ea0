// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import Testing

@testable import NotifyCoordinator

/// The focus as a name: what follows from several sources.
@Suite struct FocusEventTests {
    private func table(_ facts: (String, SourceCondition?, Fact?)...) -> SourceTable {
        var table = SourceTable(facts.map(\.0))
        for (name, condition, fact) in facts {
            table.reset(name, condition)
            if let fact { table.note(fact, from: name) }
        }
        return table
    }

    @Test func `a source that sees every window counts before one that looks at some`() {
        let (one, two) = (
            FocusedProcess(pid: 1, application: "", user: 0), FocusedProcess(pid: 2, application: "", user: 0)
        )
        var event = FocusEvent()
        let names = ["gnome", "x11"]
        // The other one may know.
        #expect(event.take(table(("gnome", .live, .focus([], among: [])), ("x11", nil, nil)), names) == .nothing)
        let first = table(("gnome", .live, .focus([one], among: [])), ("x11", .live, .focus([two])))
        #expect(event.take(first, names) == .change(EventChange(SystemEvent.focus, state: 2, isPosted: false)))
        #expect(event.take(first, names) == .nothing)
        // No program has it for a moment, or for longer.
        let nobody = table(("gnome", .live, .focus([], among: [])), ("x11", .live, .focus([])))
        #expect(event.take(nobody, names) == .later && event.take(first, names) == .nothing)
        #expect(event.take(nobody, names) == .later)
        #expect(event.take(nobody, names, hasPaused: true) == .change(EventChange(SystemEvent.focus, state: 0)))
        #expect(event.take(first, names) == .change(EventChange(SystemEvent.focus, state: 2)))
        let away = table(("gnome", .off("away"), nil), ("x11", .off("away"), nil))
        guard case .unknown = event.take(away, names) else { return #expect(Bool(false)) }
        #expect(event.take(away, names) == .nothing)
        // It comes back with what has changed in the meantime.
        let later = table(("gnome", .live, .focus([one], among: [])), ("x11", .off("away"), nil))
        #expect(event.take(later, names) == .change(EventChange(SystemEvent.focus, state: 1)))
    }

    @Test func `without a source that is said once, and the first that comes is no change`() {
        var event = FocusEvent()
        let off = table(("gnome", .off("away"), nil))
        #expect(event.take(off, ["gnome"]) == .unknown("no source knows which program has the focus"))
        #expect(event.take(off, ["gnome"]) == .nothing)
        let one = FocusedProcess(pid: 1, application: "", user: 0)
        let live = table(("gnome", .live, .focus([one])))
        #expect(event.take(live, ["gnome"]) == .change(EventChange(SystemEvent.focus, state: 1, isPosted: false)))
    }
}
