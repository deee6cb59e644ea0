// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// What a document shows between two fences, or the README in its table of what to write instead.
struct Block: CustomTestStringConvertible {
    let document: String
    let language: String
    let lines: [String]

    var testDescription: String { "\(document): \(lines.first ?? "")" }

    /// What a person types: the lines with a prompt such as `$` or `one$`, without it.
    var commands: [String] {
        lines.compactMap { line in prompt(of: line).map { String(line.dropFirst($0)) } }
    }

    /// What the commands print.
    var output: [String] { lines.filter { prompt(of: $0) == nil } }

    private func prompt(of line: String) -> Int? {
        guard let end = line.firstRange(of: "$ ") else { return nil }
        let who = line[..<end.lowerBound]
        return who.allSatisfy(\.isLetter) ? who.count + 2 : nil
    }

    /// The blocks of all documents.
    static let all = documents.flatMap { document -> [Block] in
        var blocks: [Block] = []
        var language: String?
        var lines: [String] = []
        let text = (try? readFile("\(packageFolder)/\(document)")) ?? ""
        let instead = Readme.instead.map(\.new)
        if document == Readme.path { blocks.append(Block(document: document, language: "sh", lines: instead)) }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                if let known = language {
                    blocks.append(Block(document: document, language: known, lines: lines))
                    language = nil
                } else {
                    language = String(line.dropFirst(3))
                    lines = []
                }
            } else if language != nil {
                lines.append(String(line))
            }
        }
        return blocks
    }

    /// Their paths in the package.
    static let documents =
        [
            "README.md", "CONTRIBUTING.md", "SECURITY.md", "Benchmarks/README.md",
            "Sources/Darwin/DarwinNotify/DarwinNotify.docc/DarwinNotify.md",
        ]
        + ((try? run("ls", ["\(packageFolder)/Documentation"]).lines) ?? [])
        .filter { $0.hasSuffix(".md") }.map { "Documentation/\($0)" }
}
