// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// What the library exports to the programs that load it.
@Suite struct LibraryTests {
    let library: CLibrary
    let file: String

    init() throws {
        library = try CLibrary.shared.get()
        file = try productPath("libnotifybus.so")
    }

    @Test func `it exports the functions of the headers and nothing else`() throws {
        let symbols = try run("nm", ["-D", "--defined-only", file]).lines.compactMap { line -> String? in
            let fields = line.split(separator: " ")
            // Capital letters denote exported symbols; A is the name of the version.
            guard fields.count == 3, let kind = fields[1].first, kind.isUppercase, kind != "A" else { return nil }
            return String(fields[2])
        }
        let wanted = try readLines(library.exports).map { $0 + "@@NOTIFYBUS_0" }
        #expect(symbols.sorted() == wanted)
        // See deb-symbols(5). Not every linker makes a symbol of the version, so that one is optional.
        let released = try readLines(library.symbols).dropFirst()
            .filter { $0.hasPrefix(" ") && !$0.hasPrefix(" (optional)NOTIFYBUS_0@") }
            .map { $0.dropFirst().prefix { $0 != "@" } }
        #expect(released.count > 20)
        #expect(Set(released).isSubset(of: symbols.map { $0.prefix { $0 != "@" } }))
        let headers = try run("cat", [library.includes + "/notify.h", library.includes + "/notify_private.h"]).output
        for name in try readLines(library.exports) {
            // In parentheses if a macro of that name must not replace it.
            #expect(headers.contains(" \(name)(") || headers.contains("(\(name))("))
        }
    }

    @Test func `it has no other name than its file's, so that the programs of dependents find it`() throws {
        // 'make build' adds the one by which installed programs find it: Scripts/check/install checks that.
        #expect(try !run("readelf", ["-d", file]).output.contains("soname"))
        let program = try library.compile("no-dispatch.c")
        #expect(try run("readelf", ["-d", program]).output.contains("Shared library: [libnotifybus.so]"))
    }

    @Test func `it needs no Swift library, no libdispatch and no Blocks runtime`() throws {
        let needed = try run("readelf", ["-d", file]).lines.filter { $0.contains("(NEEDED)") }
        #expect(needed.contains { $0.contains("libdbus-1.so.3") })
        #expect(!needed.contains { $0.contains("swift") || $0.contains("dispatch") || $0.contains("Blocks") })
        let undefined = try run("nm", ["-D", "--undefined-only", file]).output
        #expect(!undefined.contains("dispatch_") && !undefined.contains("_Block_") && !undefined.contains("$s"))
    }
}
