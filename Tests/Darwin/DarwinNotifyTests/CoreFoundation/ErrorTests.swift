// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// What Darwin's functions can't report.
@Suite struct ErrorTests {
    private static let post = "CFNotificationCenterPostNotification"
    private static let add = "CFNotificationCenterAddObserver"
    private static let remove = "CFNotificationCenterRemoveObserver"
    private static let removeEvery = "CFNotificationCenterRemoveEveryObserver"

    @Test(arguments: anyBusKind(), forms)
    func `a handler is called for each failure`(kind: BusKind, form: String) throws {
        #expect(
            try PrivateBus(kind).lines(of: form, "errors") == [
                "\(ErrorTests.post) invalidName ",
                "\(ErrorTests.post) invalidName \(String(repeating: "x", count: 512))",
                "\(ErrorTests.add) invalidName nul \0 inside",
                "\(ErrorTests.post) nil ",
                "\(ErrorTests.remove) nil ",
                "\(ErrorTests.removeEvery) nil ",
                "end",
            ]
        )
    }

    @Test(
        .enabled(if: FlatpakSandbox.obstacle == nil, "\(FlatpakSandbox.obstacle ?? "")"),
        arguments: anyBusKind(),
        forms
    )
    func `in a Flatpak that hides the bus the handler is called once, and own posts are heard`(
        kind: BusKind,
        form: String
    ) throws {
        let bus = try PrivateBus(kind)
        for (sockets, expected) in [
            ("x11;wayland;", ["\(ErrorTests.add) sandboxed name"]), ("x11;session-bus;", []),
        ] {
            let sandbox = try FlatpakSandbox(on: bus, sockets: sockets)
            let program = try sandbox.start(productPath(form), ["reach"])
            let result = try program.wait()
            #expect(result.status == 0 && result.errorOutput == "", "\(result.errorOutput)")
            #expect(result.lines == expected + Array(repeating: "own name", count: 3) + ["end"])
        }
    }

    @Test(arguments: anyBusKind(), forms)
    func `without a handler each kind of failure prints one line on standard error`(kind: BusKind, form: String) throws
    {
        let bus = try PrivateBus(kind)
        let result = try run(productPath(form), ["errors-without-handler"], environment: bus.environment)
        #expect(result.status == 0)
        #expect(result.lines == ["end"])
        let lines = result.errorOutput.split(separator: "\n")
        let beginnings = [
            "\(ErrorTests.post) did nothing. The name is empty;",
            "\(ErrorTests.add) did nothing. The name contains a NUL",
            "\(ErrorTests.post) requires a name,",
            "\(ErrorTests.remove) requires an observer,",
            "\(ErrorTests.removeEvery) requires a center,",
        ]
        #expect(lines.count == beginnings.count)
        for (line, beginning) in zip(lines, beginnings) { #expect(line.hasPrefix(beginning)) }
    }
}
