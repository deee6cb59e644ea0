// SPDX-License-Identifier: Apache-2.0

import NotifyBus
import NotifyCore
import TestSupport
import Testing

private typealias NotifyCenter = NotifyBus.NotifyCenter
private typealias NotifyName = NotifyBus.NotifyName
private typealias NotifySubject = NotifyBus.NotifySubject
private typealias NotifyBusError = NotifyBus.NotifyBusError

/// What is observed, and how errors are told apart.
@Suite struct SubjectTests {
    @Test(arguments: busKinds)
    func `an observer of several things hears each post once`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let subject = NotifySubject.any(of: [
            "com.example.a", .names(["com.example.b", "com.example.a"]), .prefix("com.example.a"), .prefix("net."),
            .prefix("net."),
        ])
        let heard = Recorder<NotifyName>()
        let observation = try center.addObserver(matching: subject, timeout: .seconds(25)) { heard.append($0) }
        let posts: [NotifyName] = ["com.example.a", "com.example.b", "com.example.c", "com.example.ab", "net.x"]
        for name in posts { try center.postOnceConnected(name) }
        try center.synchronize(timeout: .patience)
        try center.barrier(timeout: .patience)
        #expect(heard.elements == posts.filter { $0 != "com.example.c" })
        observation.cancel()
    }

    @Test func `a prefix that no name can have is an error`() throws {
        for prefix in ["", "a\0", String(repeating: "a", count: 512)] {
            let error = #expect(throws: NotifyBusError.self) { try NotifyPrefix(prefix) }
            #expect(error?.code == .invalidName)
        }
    }

    @Test func `a subject without a name is an error`() async throws {
        let center = NotifyCenter(bus: .address("unix:path=/nonexistent/bus"))
        for subject in [[], .names([]), .any(of: [[], .names([])])] as [NotifySubject] {
            #expect("\(subject)" == "nothing")
            let error = await #expect(throws: NotifyBusError.self) { try await center.notifications(matching: subject) }
            #expect(error?.code == .invalidName)
        }
    }

    @Test func `a subject prints as a person would say it`() throws {
        #expect("\(NotifySubject.everything)" == "every name")
        #expect("\("com.example.a" as NotifySubject)" == "com.example.a")
        let subject: NotifySubject = [.names(["com.example.a", "com.example.b"]), .prefix("net.example.")]
        #expect("\(subject)" == "com.example.a, com.example.b or every name that begins with net.example.")
        #expect(subject == .any(of: ["com.example.a", "com.example.b", .prefix("net.example.")]))
        #expect("\(NotifyPrefix("net.example."))" == "net.example.")
    }

    @Test func `a literal that is a pattern of the commands ends a debug build with a sentence`() async throws {
        let name = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = "com.example.*" as NotifyName
        }
        let text = try String(decoding: #require(name).standardErrorContent, as: UTF8.self)
        #expect(text.contains(#"use .prefix("com.example.")"#))
        let prefix = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = "*" as NotifyPrefix
        }
        let other = try String(decoding: #require(prefix).standardErrorContent, as: UTF8.self)
        #expect(other.contains("A prefix needs no asterisk: .everything"))
        // Text from elsewhere may be such a name.
        #expect(try NotifyName(String("com.example.*")).rawValue == "com.example.*")
    }

    @Test func `a literal that is no name ends the program with a sentence`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = NotifySubject(stringLiteral: "")
        }
        let text = try String(decoding: #require(result).standardErrorContent, as: UTF8.self)
        #expect(text.contains("“” is not a valid name. The name is empty"))
    }

    @Test func `errors are equal if all that they show is, and are caught by their code`() throws {
        let first = try #require(throws: NotifyBusError.self) { try NotifyName(String()) }
        let other = try #require(throws: NotifyBusError.self) { try NotifyName(String("a\0b")) }
        #expect(first.code == other.code)
        #expect(first != other)
        #expect(Set([first, other, first]).count == 2)
        do {
            throw first
        } catch NotifyBusError.Code.timedOut {
            Issue.record("It is another code.")
        } catch NotifyBusError.Code.invalidName {
            #expect(first.description.hasSuffix("."))
        }
    }
}
