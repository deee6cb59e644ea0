// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// Files with not a line changed, compiled with the two flags of Documentation/porting.md.
@Suite struct UnchangedTests {
    @Test(arguments: anyBusKind())
    func `a file that imports only Foundation`(kind: BusKind) throws {
        let lines = try PrivateBus(kind).lines(of: "darwin-unchanged", "only-foundation")
        #expect(lines == Array(repeating: "heard in 1970 true", count: 2))
    }

    @Test(arguments: anyBusKind())
    func `a file that imports CoreFoundation, and runs its run loop`(kind: BusKind) throws {
        let lines = try PrivateBus(kind).lines(of: "darwin-unchanged", "with-core-foundation")
        #expect(lines == ["heard com.example.with-core-foundation"])
    }

    @Test(arguments: anyBusKind())
    func `a wrapper that names every center, and tells them apart`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let result = try run(productPath("darwin-unchanged"), ["every-center"], environment: bus.environment)
        let name = "com.example.moved"
        #expect(
            result.lines == [
                "Anna heard \(name) from Anna 1 in local",
                "Ben heard \(name) from Anna 1 in local",
                "Anna heard \(name) from Ben 2 in local",
                "Ben heard \(name) from Ben 2 in local",
                "Anna heard \(name) from nobody 3 in local",
                "Ben heard \(name) from Anna 4 in local",
                "Anna heard \(name) from nobody 0 in darwin",
            ]
        )
        #expect(result.status == 0)
        // The distributed center, which was used twice.
        #expect(result.errorOutput.split(separator: "\n").count == 1)
        #expect(result.errorOutput.contains("Linux has no distributed center."))
    }

    /// With a module in place of the real one, which can't be fetched here.
    @Test func `a file that imports Combine gets another module by alias`() throws {
        let folder = try run("mktemp", ["-d"]).lines[0]
        defer { _ = try? run("rm", ["-r", folder]) }
        let script = """
            cd "$0"
            echo 'public struct Just<Output> { public init(_ output: Output) {} }' >OpenCombine.swift
            swiftc -emit-module -module-name OpenCombine OpenCombine.swift
            printf 'import Combine\\nlet publisher = Combine.Just(1)\\n' >main.swift
            swiftc -typecheck -I . -module-alias Combine=OpenCombine main.swift
            """
        let result = try run("sh", ["-ec", script, folder], timeout: .patience)
        #expect(result.status == 0, "\(result.errorOutput)")
    }

    /// The package does what the page says.
    @Test func `the flags are those of the porting page`() throws {
        func squeezed(_ file: String) throws -> String {
            try readFile("\(packageFolder)/\(file)").filter { !$0.isWhitespace }
        }
        let page = try squeezed("Documentation/porting.md")
        let manifest = try squeezed("Package.swift")
        let flags = """
            "-Xfrontend", "-import-module", "-Xfrontend", "DarwinNotify",
            "-module-alias", "CoreFoundation=DarwinNotify",
            """
        #expect(page.contains(flags.filter { !$0.isWhitespace }))
        #expect(manifest.contains(flags.filter { !$0.isWhitespace }))
        for alias in ["Darwin=notify", "Combine=OpenCombine"] { #expect(page.contains("-module-alias\(alias)")) }
    }
}
