// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore
import TestSupport
import Testing

@testable import notify_wait

@Suite struct ParsingTests {
    private func parse(_ words: [String]) throws -> (settings: WaitSettings, operands: Operands) {
        var settings = WaitSettings()
        let arguments = try words.map { try #require(Argument(copying: $0)) }
        let operands = try WaitCommand.command.parse(arguments, into: &settings)
        return (settings, operands)
    }

    @Test(arguments: [["-n5"], ["-n", "5"], ["--count", "5"], ["--count=5"], ["-fn5"], ["-n1", "-n5"]])
    func `a value may follow its option in any of the usual ways`(words: [String]) throws {
        #expect(try parse(words).settings.count == 5)
    }

    @Test func `what is no option is an operand, wherever it stands`() throws {
        let (settings, operands) = try parse(["a", "-f", "-", "b", "--quiet", "", "--", "-n", "--", "c"])
        #expect(settings.follows && settings.common.verbosity == .quiet)
        #expect(operands.beforeDashes.map(\.string) == ["a", "-", "b", ""])
        #expect(operands.afterDashes?.map(\.string) == ["-n", "--", "c"])
        #expect(try parse(["a"]).operands.afterDashes == nil)
        #expect(try parse(["a", "--"]).operands.afterDashes?.isEmpty == true)
    }

    @Test func `a value may look like an option, be empty, or contain an equals sign`() throws {
        #expect(try parse(["--then", "--all"]).settings.then?.string == "--all")
        #expect(try parse(["--then="]).settings.then?.string == "")
        #expect(try parse(["--then=a=b"]).settings.then?.string == "a=b")
        #expect(try parse(["--address", "unix:path=/x"]).settings.common.bus == .address("unix:path=/x"))
    }

    @Test(arguments: ["--coun", "--COUNT=1", "-x", "---", "--=", "--count ", "--n"])
    func `only whole names are options`(word: String) throws {
        #expect(throws: UsageError.self) { try parse([word, "1"]) }
    }

    @Test func `every option has one name, a help, and is in the help text`() {
        let options = WaitCommand.command.options
        #expect(Set(options.map(\.long)).count == options.count)
        let letters = options.compactMap(\.short)
        #expect(Set(letters).count == letters.count)
        for option in options {
            #expect(option.help.hasSuffix("."))
            #expect(WaitCommand.command.help.contains("--" + option.long))
        }
    }

    @Test(
        arguments: [
            ("timeot", "timeout"), ("tiemout", "timeout"), ("tim", "timeout"), ("ready", nil),
            ("ready-fdd", "ready-fd"),
            ("elephant", nil), ("", nil), ("formatt", "format"), (String(repeating: "x", count: 1000), nil),
        ] as [(String, String?)]
    )
    func `the nearest option is suggested, and none if none is near`(slip: String, suggestion: String?) throws {
        let error = try #require(throws: UsageError.self) { try parse(["--" + slip + "=1"]) }
        if let suggestion {
            #expect(error.message.hasSuffix("did you mean '--\(suggestion)'?"))
        } else {
            #expect(!error.message.contains("did you mean"))
        }
    }

    @Test func `an argument that is not UTF-8 stays what it is`() throws {
        let bytes: [CChar] = [0x63, -1, 0]
        try bytes.withUnsafeBufferPointer { buffer in
            let argument = Argument(try #require(buffer.baseAddress))
            #expect(argument.string == nil)
            #expect(Array(argument.bytes) == [0x63, 0xff])
            #expect(argument.quoted == #"'c\xff'"#)
            #expect(Array(argument.dropFirst(1).bytes) == [0xff])
            #expect(argument.dropFirst(5).count == 0)
        }
    }
}
