// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// Runs the programs of `Snippets/`, which the articles show.
@Suite struct SnippetTests {
    /// What each prints, on a bus without an agent.
    static let outputs = [
        "Observe": "heard com.example.backup.done\n",
        "ObserveOnQueue": "reloading because of com.example.config.changed\n",
        "Sequence": "heard com.example.tick\n",
        "HearOnce": "heard com.example.backup.done\n",
        "Next": "heard com.example.pong\n",
        "MainActor": "title com.example.title\n",
        "LookFirst": "the backup is there\n",
        "EveryPost": "posted 10000 coalesced 0\n",
        "OwnCenter": "posted 1\n",
        "Background": "foreground\n",
    ]

    static let snippets = (try? run("ls", ["\(packageFolder)/Snippets"]).lines.map { String($0.dropLast(6)) }) ?? []

    @Test(arguments: snippets)
    func `a snippet runs to its end and prints what it should`(snippet: String) throws {
        let bus = try PrivateBus(.daemon)
        let result = try run(productPath(snippet), environment: environment(bus: bus.address))
        #expect(result.output == SnippetTests.outputs[snippet])
        #expect(result.errorOutput == "")
        #expect(result.status == 0)
    }

    @Test func `with an agent a program can move itself to the background`() throws {
        let observer = try Observer()
        let result = try run(productPath("Background"), environment: environment(bus: observer.bus.address))
        #expect(result.output == "background\nforeground\n")
    }

    @Test func `the article's whole program compiles`() throws {
        let page = try readFile("\(packageFolder)/Sources/Library/NotifyBus/NotifyBus.docc/WritingAProgram.md")
        let program = try #require(page.firstMatch(of: #/`{3}swift\n(import NotifyBus\n[^`]*)`{3}/#)).1
        let result = try typecheck(String(program))
        #expect(result.status == 0, "\(result.errorOutput)")
    }

    @Test func `an article shows every snippet`() throws {
        let articles = try run("cat", ["-s"] + articlePaths()).output
        for snippet in SnippetTests.snippets {
            #expect(articles.contains("\n@Snippet(path: \"NotifyBus/Snippets/\(snippet)\")\n"), "\(snippet)")
        }
    }

    private func articlePaths() throws -> [String] {
        let folder = "\(packageFolder)/Sources/Library/NotifyBus/NotifyBus.docc"
        return try run("ls", [folder]).lines.filter { $0.hasSuffix(".md") }.map { "\(folder)/\($0)" }
    }
}
