// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// What a reader of the README sees first.
enum Readme {
    static let path = "README.md"
    static let text = (try? readFile("\(packageFolder)/\(path)")) ?? ""

    /// The table of what to write instead of what.
    static let instead = text.matches(of: /\n\| `([^`]+)` \| `([^`]+)` \|/).map { row in
        (old: String(row.1).replacing("\\|", with: "|"), new: String(row.2).replacing("\\|", with: "|"))
    }
}

@Suite struct ReadmeTests {
    @Test func `the README is short`() {
        #expect(Readme.text.split(whereSeparator: \.isWhitespace).count < 900)
    }

    /// ``DocumentTests`` runs what to write instead.
    @Test func `what the README replaces could be in a script`() throws {
        try #require(Readme.instead.count >= 5)
        for (old, _) in Readme.instead {
            let result = try run("bash", ["-n", "-c", old])
            #expect(result.status == 0, "\(result.errorOutput)")
        }
    }

    /// 'make docs' follows those of all documents.
    @Test func `each link in the README leads to something in the repository`() throws {
        let links = Readme.text.matches(of: /\]\(([^)#]*)(?:#([^)]*))?\)/)
        try #require(links.count > 20)
        for link in links {
            let path = link.1.isEmpty ? Readme.path : String(link.1)
            #expect(try run("test", ["-e", "\(packageFolder)/\(path)"]).status == 0, "\(path)")
            guard let anchor = link.2 else { continue }
            let headings = try readLines("\(packageFolder)/\(path)").filter { $0.hasPrefix("#") }
            let anchors = headings.map { heading in
                let words = heading.drop { $0 == "#" }.dropFirst().lowercased()
                return words.filter { $0.isLetter || $0.isNumber || "- _".contains($0) }.replacing(" ", with: "-")
            }
            #expect(anchors.contains(String(anchor)), "\(path): \(anchor)")
        }
    }

    /// The changelog says whether there is a release, and `make release` writes both.
    @Test(
        arguments: [Readme.path, "Documentation/porting.md"]
            + ["ConfigurationFiles", "Databases", "FoundationMessages", "LoggingCenters", "Services"].map {
                "Sources/Library/NotifyBus/NotifyBus.docc/\($0).md"
            }
    )
    func `a dependency names the branch until there is a version`(document: String) throws {
        let changes = try readFile("\(packageFolder)/CHANGELOG.md")
        let newest = changes.firstMatch(of: /\n## ([0-9][^ ,]*), [0-9]/).map { String($0.1) }
        let text = try readFile("\(packageFolder)/\(document)")
        let requirement = try #require(text.firstMatch(of: /\.package\(url: "[^"]*", (.*)\)/)).1
        #expect(requirement.hasPrefix(newest.map { "from: \"\($0)\"" } ?? "branch: \"main\""))
    }

    @Test(arguments: [Readme.path, "Documentation/installing.md"])
    func `a document names the Swift that the package needs`(document: String) throws {
        let manifest = try readFile("\(packageFolder)/Package.swift")
        let version = try #require(manifest.firstMatch(of: /swift-tools-version: ([0-9.]+)/)).1
        #expect(try readFile("\(packageFolder)/\(document)").contains("Swift \(version)"))
    }
}
