// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyTokens
import TestSupport
import Testing

/// Files that are monitored for a token.
@Suite(.timeLimit(.minutes(2)))
struct FileTests {
    let folder: String

    init() throws {
        var template = Array("/tmp/notifybus-files-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private func shell(_ script: String) throws {
        let result = try run("sh", ["-c", "cd \(folder) && \(script)"])
        try #require(result.status == 0, "\(result.errorOutput)")
    }

    @Test(arguments: busKinds)
    func `each creation, write and removal is one post`(kind: BusKind) throws {
        defer { _ = try? run("rm", ["-r", folder]) }
        let room = try NotifyRoom(kind)
        let heard = Counter()
        let observation = try room.other.addObserver(forName: "com.example.file") { _ in heard.add() }
        defer { observation.cancel() }
        let token = try room.register("com.example.file")
        try room.engine.monitorFile(token, path: folder + "/file")
        // A second file, so that what did not come is seen to be missing.
        let fence = try room.register("com.example.fence")
        let fences = Counter()
        let second = try room.other.addObserver(forName: "com.example.fence") { _ in fences.add() }
        defer { second.cancel() }
        try room.engine.monitorFile(fence, path: folder + "/fence")
        var count = 0
        func expect(_ posts: Int, _ script: String) throws {
            count += posts
            try shell(script)
            #expect(heard.wait(for: count), "\(script)")
            let before = fences.value
            try shell("mv neutral fence; touch neutral")
            #expect(fences.wait(for: before + 1))
            #expect(heard.value == count, "\(script)")
        }
        try shell("touch neutral")
        try expect(1, ": >file")
        try expect(1, "echo a >>file")
        try expect(0, "cat file >/dev/null; chmod 600 file")
        try expect(1, "echo b >file")
        try expect(1, ": >file")
        try expect(1, "echo c >file")
        try expect(0, "echo d >other")
        try expect(1, "mv other file")
        try expect(1, "rm file")
        try expect(1, "ln -s other file")
        try room.engine.cancel(token)
        try expect(0, "rm file; echo e >file")
    }

    @Test func `what can't be monitored is refused`() throws {
        defer { _ = try? run("rm", ["-r", folder]) }
        let room = try NotifyRoom(.daemon)
        let token = try room.register("com.example.file")
        let own = try room.register("self.file")
        #expect(status { try room.engine.monitorFile(token, path: nil) } == .invalidRequest)
        #expect(status { try room.engine.monitorFile(own, path: folder + "/file") } == .invalidRequest)
        #expect(status { try room.engine.monitorFile(99_999, path: folder + "/file") } == .invalidToken)
        #expect(status { try room.engine.monitorFile(token, path: folder + "/none/file") } == .invalidFile)
        #expect(status { try room.engine.monitorFile(token, path: folder + "/") } == .invalidFile)
        #expect(status { try room.engine.monitorFile(token, path: folder + "/file") } == .ok)
        #expect(status { try room.engine.monitorFile(token, path: folder + "/file2") } == .invalidRequest)
    }
}
