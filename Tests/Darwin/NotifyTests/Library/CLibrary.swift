// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import TestSupport
import Testing

/// The C library as programs find it after `make install`: the header, and a folder with the built files.
final class CLibrary: Sendable {
    /// Shared by all tests; its folder is removed with the process.
    static let shared = Result { try CLibrary() }

    /// Contains `libnotifybus.so.0`, `libnotifybus.so` and the programs.
    let folder: String
    /// Whether it was built with the address sanitizer, as the programs then must be.
    let isSanitized: Bool
    private let sources = "\(packageFolder)/Tests/Darwin/NotifyTests"
    /// The programs that have been compiled, by their command lines.
    private let programs = Mutex<[[String]: String]>([:])

    private init() throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/notifybus-c-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw TestSupportError("Cannot make a folder in \(parent).") }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let library = try productPath("libnotifybus.so")
        symlink(library, folder + "/libnotifybus.so")
        symlink(library, folder + "/libnotifybus.so.0")
        isSanitized = try run("nm", ["-D", "--undefined-only", library]).output.contains(" __asan_init")
        atexit {
            if case .success(let library) = CLibrary.shared { _ = try? run("rm", ["-rf", library.folder]) }
        }
    }

    var includes: String { packageFolder + "/Sources/Darwin/CDarwinNotify/include" }
    var exports: String { sources + "/Library/exports.txt" }
    var exportedNames: Set<String> { get throws { try Set(readLines(exports)) } }
    /// The functions of each release of the library: none may be removed.
    var symbols: String { packageFolder + "/packaging/debian/libnotifybus0.symbols" }

    func source(_ name: String) -> String { "\(sources)/Programs/\(name)" }

    /// The environment in which a program finds the library and the bus.
    func environment(_ bus: PrivateBus) -> [String: String?] {
        [
            "LD_LIBRARY_PATH": folder, "NOTIFYBUS_ADDRESS": bus.address, "DBUS_SESSION_BUS_ADDRESS": nil,
            "XDG_RUNTIME_DIR": nil,
        ]
    }

    /// Compiles a program, with warnings as errors, unless another test has, and returns its path.
    func compile(_ source: String, with compiler: String = "cc", _ flags: [String] = []) throws -> String {
        let line = [compiler, source] + flags
        if let program = programs.withLock({ $0[line] }) { return program }
        let program = "\(folder)/\(source)-\(UInt32.random(in: 0..<UInt32.max))"
        // The runtime of the address sanitizer must be that of the library: the toolchain's.
        let result = try run(
            CLibrary.compiler(isSanitized ? "clang" : compiler) ?? compiler,
            ["-Wall", "-Wextra", "-Werror", "-O1", "-I", includes, "-o", program, self.source(source)]
                + ["-L", folder, "-lnotifybus", "-lpthread"] + (isSanitized ? ["-fsanitize=address"] : []) + flags,
            timeout: .patience
        )
        guard result.status == 0 else { throw TestSupportError("\(source) does not compile: \(result.errorOutput)") }
        programs.withLock { $0[line] = program }
        return program
    }

    /// The path of a compiler: the toolchain's, which need not be in PATH, or another.
    static func compiler(_ name: String) -> String? {
        let script = #"command -v "$(dirname "$(readlink -f "$(command -v swift)")")/$0" || command -v "$0""#
        return (try? run("sh", ["-c", script, name]))?.lines.first
    }

    /// Those of these command lines whose compiler is here.
    static func available(_ commands: [String]) -> [String] {
        commands.filter { compiler(String($0.prefix { $0 != " " })) != nil }
    }

    /// The folder with the headers of the libdispatch that belongs to the toolchain's clang; nil if there is none.
    static let dispatch: String? = {
        guard let clang = compiler("clang") else { return nil }
        let folder = clang.split(separator: "/").dropLast(2).map { "/" + $0 }.joined() + "/lib/swift"
        return access(folder + "/dispatch/dispatch.h", F_OK) == 0 ? folder : nil
    }()

    static var isSanitized: Bool { (try? shared.get().isSanitized) ?? false }

    /// Compiles a program with blocks for the toolchain's libdispatch.
    func compileWithBlocks(_ source: String, _ flags: [String] = []) throws -> String {
        guard let toolchain = CLibrary.dispatch else { throw TestSupportError("The toolchain has no libdispatch.") }
        return try compile(
            source,
            with: "clang",
            ["-fblocks", "-I", toolchain, "-I", toolchain + "/Block", "-L", toolchain + "/linux"]
                + ["-ldispatch", "-lBlocksRuntime", "-Wl,-rpath,\(toolchain)/linux"] + flags
        )
    }

    /// Replaces Mach's headers, for programs that include them.
    var machStub: [String] { ["-I", source("mach-stub")] }

    /// Compiles and starts a program on a bus.
    func start(_ source: String, _ arguments: [String] = [], on bus: PrivateBus) throws -> RunningCommand {
        try TestSupport.start(compile(source), arguments, environment: environment(bus))
    }
}
