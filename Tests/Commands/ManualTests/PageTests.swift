// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import TestSupport
import Testing

@Suite struct PageTests {
    /// All pages, including those that belong to no command.
    static let pages: [String] = {
        let names = (try? run("ls", ["\(packageFolder)/man"]).lines) ?? []
        return names.map { $0.hasSuffix(".in") ? String($0.dropLast(3)) : $0 }
    }()

    @Test(arguments: CommandFacts.all)
    func `a page has every option, subcommand and exit status of its command`(command: CommandFacts) throws {
        let page = try Manuals.text(command.page).split(separator: "\n").map(String.init)
        // The first lines of entries.
        let heads = Set(
            zip(page, page.dropFirst()).filter { $0.0 == ".TP" }.flatMap { words(inBold: $0.1) }
        )
        for word in command.spellings + command.subcommands + command.statuses {
            #expect(heads.contains(word), "\(command.page) does not explain \(word)")
        }
    }

    @Test(arguments: CommandFacts.all)
    func `a page has the usual sections`(command: CommandFacts) throws {
        let page = try Manuals.text(command.page)
        var rest = page[...]
        for section in [
            "NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES", "NOTES", "SEE ALSO",
        ] {
            let heading = try #require(rest.firstRange(of: "\n.SH \(section)\n"), "\(section), in its place")
            // The newline at the end may also begin the next heading.
            rest = rest[heading.upperBound...].isEmpty ? "" : rest[page.index(before: heading.upperBound)...]
        }
        #expect(!page.contains("\n@"))
        #expect(page.contains("NotifyBus \(notifyBusVersion)"))
    }

    @Test(arguments: CommandFacts.all)
    func `a page explains every environment variable that the command's help mentions`(command: CommandFacts) throws {
        let help = try run(try productPath(command.name), ["--help"]).output
        let variables = Set(help.matches(of: /\$([A-Z_]+)/).map { String($0.1) })
        #expect(variables.contains("NOTIFYBUS_ADDRESS"))
        let lines = try Manuals.text(command.page).split(separator: "\n")
        let section = lines.drop { $0 != ".SH ENVIRONMENT" }.dropFirst().prefix { !$0.hasPrefix(".SH ") }
        let heads = zip(section, section.dropFirst()).filter { $0.0 == ".TP" }.map(\.1)
        for variable in variables {
            #expect(heads.contains { $0.contains(variable) }, "\(command.page) does not explain \(variable)")
        }
    }

    /// `make manuals` makes them.
    @Test func `the documents of the manual pages say what the pages say`() throws {
        let folder = try #require(try run("mktemp", ["-d"]).lines.first)
        defer { _ = try? run("rm", ["-r", folder]) }
        let made = try run(
            "/usr/bin/python3",
            ["\(packageFolder)/Scripts/documents/markdown.py", folder]
                + PageTests.pages.map { try Manuals.path("man/" + $0) }
        )
        #expect(made.status == 0, "\(made.errorOutput)")
        let difference = try run("diff", ["-r", "\(packageFolder)/Documentation/man", folder])
        #expect(difference.output == "", "Run 'make manuals'.")
    }

    @Test(.enabled(if: isInstalled("man"), "man is not installed."), arguments: pages)
    func `man has no complaints`(page: String) throws {
        let result = try run("man", ["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", Manuals.path("man/" + page)])
        #expect(result.errorOutput == "")
        #expect(result.status == 0)
    }

    @Test(.enabled(if: isInstalled("man"), "man is not installed."), arguments: pages)
    func `a page hyphenates no word, since a name broken across lines can't be copied`(page: String) throws {
        for width in ["60", "80", "100"] {
            let result = try run(
                "man",
                ["-E", "UTF-8", "-l", Manuals.path("man/" + page)],
                environment: ["MANWIDTH": width]
            )
            #expect(!result.output.contains("\u{2010}\n"), "\(width) columns")
            #expect(result.lines.count > 20)
        }
    }

    @Test(.enabled(if: isInstalled("mandoc"), "mandoc is not installed."), arguments: pages)
    func `mandoc has no complaints`(page: String) throws {
        let result = try run("mandoc", ["-T", "lint", Manuals.path("man/" + page)])
        #expect(result.output == "")
        #expect(result.status == 0)
    }

    /// Options of other programs, or of scripts, that pages and documents mention.
    private static let foreignOptions: Set = [
        "--capath", "--cflags", "--depth-first", "--filter", "--generate", "--global", "--libs", "--machine",
        "--mutations", "--nofork", "--now", "--output", "--print-address", "--readme", "--scope",
        "--static-swift-stdlib",
        "--talk-name", "--unit", "--user", "--wrap",
    ]

    @Test(arguments: pages.map { "man/" + $0 } + Block.documents)
    func `a page or document names no option that doesn't exist`(file: String) throws {
        let isPage = file.hasPrefix("man/")
        let text = isPage ? try Manuals.text(file) : try readFile("\(packageFolder)/\(file)")
        let known = PageTests.foreignOptions.union(CommandFacts.all.flatMap(\.spellings))
        for option in text.replacing("\\-", with: "-").matches(of: /(?:^|[^A-Za-z0-9-])(--[a-z][a-z-]*)/) {
            #expect(known.contains(String(option.1)), "\(file)")
        }
    }

    @Test func `the agent's page explains each of its settings, and says so once`() throws {
        let script = "printf 'x = y\\n' >\"$1\"; notify-agent --check --config \"$1\" 2>&1; rm \"$1\""
        let file = try run("mktemp", []).lines[0]
        let answer = try run("bash", ["-c", script, "bash", file], environment: environment(bus: "")).output
        let list = try #require(answer.firstMatch(of: /the settings are ([a-z, ]+)/)).1
        let settings = list.replacing(" and ", with: ", ").split(separator: ", ")
        try #require(settings.count > 5)
        let page = try Manuals.text("man/notify-agent.8")
        for setting in settings { #expect(page.contains("\n.BI \"\(setting) = "), "\(setting)") }
        for document in Block.documents {
            let text = try readFile("\(packageFolder)/\(document)")
            for setting in settings { #expect(!text.contains("\n| `\(setting) = "), "\(document): \(setting)") }
        }
    }

    /// Files that state the version for other tools, and how each writes it.
    private static let statements = [
        ("desktop/metainfo/org.notifybus.NotifyBus.metainfo.xml", "<release version=\"@\""),
        ("desktop/kwin/notifybus-focus/metadata.json", "\"Version\": \"@\""),
        ("packaging/debian/changelog", "notifybus (@-"),
        ("packaging/fedora/notifybus.spec", " @\n"),
        ("packaging/arch/PKGBUILD", "\n_upstream=@\n"),
        ("packaging/nix/default.nix", "version = \"@\""),
        ("CHANGELOG.md", "\n## @"),
    ]

    @Test(arguments: statements)
    func `every file that states the version states that of the commands`(file: String, statement: String) throws {
        // With a tilde a pre-release sorts before its release; see deb-version(7). rpm does the same.
        let hasTilde = file.hasPrefix("packaging/debian") || file.hasPrefix("packaging/fedora")
        let version = hasTilde ? notifyBusVersion.replacing("-", with: "~", maxReplacements: 1) : notifyBusVersion
        let text = try readFile("\(packageFolder)/\(file)")
        #expect(text.contains(statement.replacing("@", with: version)))
    }

    /// The bold words in a line of roff, as a reader sees them.
    private func words(inBold line: String) -> [String] {
        line.split(separator: "\\fB", omittingEmptySubsequences: false).dropFirst().compactMap { part in
            part.firstRange(of: "\\fR").map { part[..<$0.lowerBound].filter { $0 != "\\" } }
        }
    }
}
