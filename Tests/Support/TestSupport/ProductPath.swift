// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The folder of Package.swift, from which this was compiled.
public let packageFolder = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")

/// The path of an executable that this package builds.
///
/// It is next to the test bundle, that is, next to the file from which this code was loaded. `NOTIFYBUS_PRODUCTS_DIR`
/// selects another folder. All commands are one program that checks its name: the path of a command is that of a link,
/// in a folder with a link for each.
///
/// - Throws: ``TestSupportError`` that names the folders that were searched.
public func productPath(_ name: String) throws -> String {
    let folders = getenv("NOTIFYBUS_PRODUCTS_DIR").map { [String(cString: $0)] } ?? productFolders
    for folder in folders {
        if commands.contains(name), access("\(folder)/notify-commands", X_OK) == 0 {
            return try folderOfCommands(in: folder) + "/" + name
        }
        if access("\(folder)/\(name)", X_OK) == 0 { return "\(folder)/\(name)" }
    }
    throw TestSupportError(
        "There is no \(name) in \(folders.joined(separator: " or ")): build it, or set NOTIFYBUS_PRODUCTS_DIR."
    )
}

private let commands = [
    "notify-post", "notify-wait", "notify-state", "notify-lifecycle", "notify-top", "notify-agent",
]

/// Test programs run side by side, and each may find no links yet.
private func folderOfCommands(in folder: String) throws -> String {
    let path = folder + "/commands"
    func isThere(_ result: Int32) -> Bool { result == 0 || errno == EEXIST }
    guard isThere(mkdir(path, 0o777)), isThere(symlink("../notify-bridge", "\(path)/notify-bridge")),
        commands.allSatisfy({ isThere(symlink("../notify-commands", "\(path)/\($0)")) })
    else {
        throw TestSupportError("The links to the commands can't be made in \(path): error \(errno).")
    }
    return path
}

private let productFolders: [String] = {
    var folders: [String] = []
    for file in [loadedFile(), programFile()] {
        guard let file, let slash = file.lastIndex(of: "/") else { continue }
        let folder = String(file[..<slash])
        if !folders.contains(folder) { folders.append(folder) }
    }
    return folders
}()

/// The file from which this code was loaded, according to the kernel. A test bundle may be an executable or may be
/// opened by a helper, and for an executable `dladdr` only returns the name by which it was called.
private func loadedFile() -> String? {
    let address = UInt(bitPattern: #dsohandle)
    for line in (try? readFile("/proc/self/maps"))?.split(separator: "\n") ?? [] {
        // "START-END PERMISSIONS OFFSET DEVICE INODE PATH", the path with its blanks.
        let fields = line.split(separator: " ", maxSplits: 5)
        let range = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
        guard fields.count == 6, range.count == 2, (range[0]..<range[1]).contains(address) else { continue }
        return String(fields[5].drop { $0 == " " })
    }
    return nil
}

private func programFile() -> String? {
    guard let path = realpath("/proc/self/exe", nil) else { return nil }
    defer { free(path) }
    return String(cString: path)
}
