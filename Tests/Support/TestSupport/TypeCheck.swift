// SPDX-License-Identifier: Apache-2.0

/// What the compiler says about a program that uses this package's Swift modules, as built here.
///
/// - Parameter mode: the language mode, 5 or 6.
public func typecheck(_ text: String, inSwift mode: Int = 6) throws -> CommandResult {
    let folder = try makeFolder()
    defer { removeFolder(folder) }
    try save(text, toFile: "\(folder)/main.swift")
    let products = String(try productPath("bus-launcher").dropLast("/bus-launcher".count))
    let flags = try run("pkg-config", ["--cflags-only-I", "dbus-1"]).output
        .split(whereSeparator: \.isWhitespace).flatMap { flag in ["-Xcc", "\(flag)"] as [String] }
    var arguments = ["-typecheck", "-swift-version", "\(mode)", "-I", "\(products)/Modules"]
    for name in ["CLinux", "CForkGuard"] {
        arguments += ["-Xcc", "-fmodule-map-file=\(products)/\(name).build/module.modulemap"]
    }
    for module in ["C/CDBusShim", "Darwin/CDarwinNotify", "Darwin/CRunLoop"] {
        arguments += ["-I", "\(packageFolder)/Sources/\(module)/include"]
    }
    arguments += flags
    if text.contains("@main") { arguments.append("-parse-as-library") }
    return try run("swiftc", arguments + ["\(folder)/main.swift"], timeout: .patience * 5)
}
