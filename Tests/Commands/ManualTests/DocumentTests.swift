// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// Runs what the README, the pages of `Documentation/` and other documents show. ``SnippetTests`` and ``WireTests`` run
/// the programs of the library's articles.
@Suite struct DocumentTests {
    /// Markdown also treats indented text as a block; these tests don't.
    @Test(arguments: Block.documents)
    func `a document fences its blocks`(document: String) throws {
        let lines = try readLines("\(packageFolder)/\(document)")
        var isFenced = false
        for (before, line) in zip(lines, lines.dropFirst()) {
            if before.hasPrefix("```") { isFenced.toggle() }
            #expect(isFenced || !before.isEmpty || !line.hasPrefix("    "), "\(line)")
        }
    }

    /// A tool that fills paragraphs does not always know a list.
    @Test(arguments: Block.documents)
    func `each item of a list begins a line`(document: String) throws {
        for line in try readLines("\(packageFolder)/\(document)") {
            #expect(line.firstMatch(of: /[.;:] [2-9]\.( |$)/) == nil, "\(line)")
        }
    }

    /// In the lists of internals.md, an item begins with a file and names functions in it, and files with more.
    @Test func `the walks lead through files and functions that exist`() throws {
        let page = try readFile("\(packageFolder)/Documentation/internals.md")
        let all = try run("find", ["\(packageFolder)/Sources", "-name", "*.swift"]).output.split(separator: "\n")
        let steps = page.matches(of: /\n[0-9]+\. `([A-Za-z\/+.-]+\.swift)`:\s+`([a-zA-Z]+)/)
        try #require(steps.count > 10)
        for step in steps {
            let file = try #require(all.first { $0.hasSuffix("/\(step.1)") }, "\(step.1)")
            #expect(try readFile(String(file)).contains("func \(step.2)"), "\(step.1): \(step.2)")
            // Up to the end of the item.
            let lines = page[step.range.lowerBound...].split(separator: "\n")
            let item = (lines.prefix(1) + lines.dropFirst().prefix { $0.hasPrefix("   ") }).joined(separator: "\n")
            let words = item.matches(of: /`([^`]+)`/).map { String($0.1) }
            let files = try words.filter { $0.hasSuffix(".swift") }.map { file in
                try #require(all.first { $0.hasSuffix("/\(file)") }, "\(step.1): there is no \(file)")
            }
            // Events and effects are called by their names.
            let lists = ["Event", "Effect"].map { "\(packageFolder)/Sources/Agent/NotifyCoordinator/\($0).swift" }
            let sources = try run("cat", files.map { String($0) } + lists).output
            for word in words where word.first?.isLowercase == true && !word.contains(/[ .\/]/) {
                let name = String(word.prefix { $0 != "(" })
                #expect(sources.contains("func \(name)") || sources.contains("case \(name)"), "\(step.1): \(name)")
            }
        }
    }

    @Test(arguments: Block.all)
    func `what a document shows is what happens`(block: Block) throws {
        let trial = try #require(
            Trial.table.first {
                $0.document == block.document && block.lines.first?.hasPrefix($0.beginning) == true
            }?.trial,
            "DocumentTrials.swift doesn't say how to try this block."
        )
        switch trial {
        case .picture: break
        case .service(let name): try checkService(block.lines, posts: name)
        case .layout(let folder): try checkLayout(block.lines, folder: folder)
        case .makes:
            let makefile = try run("cat", ["\(packageFolder)/Makefile", "\(packageFolder)/Scripts/build/install.mk"])
                .output
            for command in block.commands {
                let words = command.split(separator: " ").drop { $0 == "sudo" }
                try #require(words.count > 1 && words.first == "make", "\(command)")
                #expect(makefile.contains("\n\(words[words.startIndex + 1]):"), "\(command)")
            }
        case .elsewhere(let file, let target):
            let source = try readFile("\(packageFolder)/\(file)")
            #expect(source.contains(block.document))
            let steps = try readFile("\(packageFolder)/.ci/run").split(separator: "\n")
            #expect(steps.contains { "\($0) ".contains(" make \(target) ") })
        case .compiles(let lines):
            let result = try typecheck(lines + "\n" + block.lines.joined(separator: "\n"))
            #expect(result.status == 0, "\(result.errorOutput)")
        case .understood:
            let (bus, agent) = try busWithAgent()
            defer { agent.send(signal: 15) }
            for command in block.commands {
                let result = try bus.script(command)
                #expect(result.status <= 1, "\(command): \(result.errorOutput)")
            }
        case .prints(let script):
            let result = try tried(block, by: script) { $0.lines.map(shape) == block.output.map(shape) }
            #expect(result.lines.map(shape) == block.output.map(shape), "\(result.errorOutput)")
        case .says(let words, let script):
            let result = try tried(block, by: script) { $0.output.contains(words) && $0.status == 0 }
            #expect(result.output.contains(words), "\(result.errorOutput)")
            #expect(result.status == 0, "\(result.output)\(result.errorOutput)")
        }
    }

    /// The path at the beginning of each line must exist, in the folder above it that is indented less.
    private func checkLayout(_ lines: [String], folder: String) throws {
        var parents = [(indent: -1, path: "\(packageFolder)/\(folder)")]
        for line in lines {
            let indent = line.prefix { $0 == " " }.count
            let text = line.dropFirst(indent)
            // A line that is indented further continues the one above it.
            if text.isEmpty || indent > 8 { continue }
            while let last = parents.last, last.indent >= indent { parents.removeLast() }
            guard let parent = parents.last?.path else { continue }
            let words = text.split(separator: " ", omittingEmptySubsequences: false).prefix { !$0.isEmpty }
            // Several may share a line: folders, or a list with commas.
            let isList = words.allSatisfy { $0.hasSuffix("/") || $0.hasSuffix(",") || $0 == words.last }
            let paths = (isList ? words : words.prefix(1)).map { $0.hasSuffix(",") ? $0.dropLast() : $0 }
            for path in paths {
                #expect(try run("test", ["-e", "\(parent)/\(path)"]).status == 0, "\(parent)/\(path)")
            }
            if let first = paths.first { parents.append((indent, "\(parent)/\(first)")) }
        }
    }

    /// Runs a block, several times if need be: it may allow its commands less time than they take on a busy machine.
    private func tried(
        _ block: Block,
        by script: String,
        until isRight: (CommandResult) -> Bool
    ) throws -> CommandResult {
        var result = try tried(block, by: script)
        for _ in 0..<9 where !isRight(result) { result = try tried(block, by: script) }
        return result
    }

    private func tried(_ block: Block, by script: String) throws -> CommandResult {
        let first = block.commands.first ?? block.lines.first ?? ""
        // A block that starts an agent itself must not find one.
        guard !first.hasPrefix("notify-agent") else {
            return try bus(for: block).script(inFolder(script), block.commands)
        }
        let (bus, agent) = try busWithAgent(bus(for: block))
        defer { agent.send(signal: 15) }
        return try bus.script(inFolder(script), block.commands, ["LINES_OF_BLOCK": block.lines.joined(separator: "\n")])
    }

    /// A bus; for a command that a policy affects, one with the policy that the page shows.
    private func bus(for block: Block) throws -> PrivateBus {
        let lines = Block.all.filter { $0.document == block.document }.map(\.lines).joined()
        let denial = lines.first { $0.contains("<deny ") }
        guard block.lines.first?.contains("--system") == true, let denial else { return try PrivateBus(.daemon) }
        let policy = PrivateBus.openPolicy + "<policy context=\"mandatory\">\(denial)</policy>"
        return try PrivateBus(.daemon, policy: policy)
    }

    private func busWithAgent(_ bus: PrivateBus? = nil) throws -> (PrivateBus, RunningCommand) {
        let bus = try bus ?? PrivateBus(.daemon)
        let agent = try start(productPath("notify-agent"), ["--address", bus.address, "-q"], output: .null)
        try #require(try bus.script("until notify-lifecycle status; do :; done").status == 0)
        return (bus, agent)
    }

    /// A script that runs in a folder of its own, with `await FILE`, which waits until a file exists.
    private func inFolder(_ script: String) -> String {
        """
        cd "$(mktemp -d)" && trap 'rm -rf "$PWD"' EXIT
        await() { until [[ -e $1 ]]; do sleep 0.01; done; }
        \(script)
        """
    }

    /// A line without what differs each time: numbers, and the width of columns.
    private func shape(_ line: String) -> String {
        let words = line.split(whereSeparator: \.isWhitespace).map { word in
            word.allSatisfy { $0.isNumber || $0 == "s" } ? "N" : String(word)
        }
        return words.joined(separator: " ")
    }
}
