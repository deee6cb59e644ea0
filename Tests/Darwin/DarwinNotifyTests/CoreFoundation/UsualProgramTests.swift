// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import TestSupport
import Testing

/// Typical programs, compiled unchanged, do what they do on Apple's systems.
@Suite struct UsualProgramTests {
    private static let outputs: [String: [String]] = [
        "duplicate-registration": ["heard com.example.tick", "heard com.example.tick", "heard com.example.end"],
        "removal-by-observer": ["first com.example.door.opened", "first com.example.door.closed"],
        "observation-token": ["paused", "resumed"],
        "stream": ["1 com.example.sample", "2 com.example.sample", "3 com.example.sample"],
        "publisher": ["second com.example.station.changed"],
        "typed-wrapper": ["com.example.report 2 0"],
        "main-actor-model": ["5"],
        "posting-with-user-info": ["com.example.sent and nothing else", "com.example.sent.with.options 0"],
        "removal-in-deinit": ["first is gone", "second com.example.logged.in", "second com.example.logged.out"],
        "function-as-callback": ["began", "ended"],
        "fan-out": ["one", "two"],
    ]

    @Test(arguments: anyBusKind(), forms)
    func `each program hears what it posts`(kind: BusKind, form: String) throws {
        let bus = try PrivateBus(kind)
        for (program, output) in UsualProgramTests.outputs.sorted(by: { $0.key < $1.key }) {
            #expect(try bus.lines(of: form, program) == output, "\(program)")
        }
    }

    @Test(arguments: anyBusKind(), forms)
    func `a message can be passed in a file, with a ping`(kind: BusKind, form: String) throws {
        let bus = try PrivateBus(kind)
        let folder = try #require(run("mktemp", ["-d"]).lines.first)
        defer { _ = try? run("rm", ["-r", folder]) }
        #expect(try bus.lines(of: form, "file-and-ping", folder) == ["hello", "goodbye"])
    }

    @Test(arguments: anyBusKind(), forms)
    func `an observer hears the posts of another program, in order`(kind: BusKind, form: String) throws {
        let bus = try PrivateBus(kind)
        let program = try bus.startProgram(form, "observer-with-context")
        try program.waitForOutput(containing: "ready\n")
        let center = NotifyCenter(bus: .address(bus.address))
        for _ in 1...3 { try center.postOnceConnected("com.example.settings.changed") }
        let name = "com.example.settings.changed"
        #expect(try program.waitForOutputLines(4) == ["ready", "1 \(name)", "2 \(name)", "3 \(name)"])
    }

    @Test(arguments: anyBusKind())
    func `an asynchronous main function serves the main queue`(kind: BusKind) throws {
        #expect(try PrivateBus(kind).lines(of: "darwin-async-main") == ["heard com.example.awaited"])
    }

    @Test func `a program without Foundation gets none`() throws {
        for program in ["darwin-programs", "darwin-async-main"] {
            let libraries = try run("ldd", [productPath(program)])
            #expect(libraries.status == 0)
            #expect(libraries.output.contains("libdispatch"))
            #expect(!libraries.output.contains("Foundation"))
        }
    }

    @Test func `the example of the porting page compiles`() throws {
        let marker = "// This is the example of Documentation/porting.md"
        let source = try readFile("\(packageFolder)/Tests/Darwin/DarwinNotifyTests/CoreFoundation/PortingPage.swift")
        let page = try readFile("\(packageFolder)/Documentation/porting.md")
        let paragraphs = source.split(separator: "\n\n")
        let start = try #require(paragraphs.firstIndex { $0.hasPrefix(marker) })
        let example = paragraphs[(start + 1)...].joined(separator: "\n\n")
        #expect(example.contains("CFNotificationCenterAddObserver"))
        #expect(page.contains("```swift\n\(example)```\n"))
    }
}
