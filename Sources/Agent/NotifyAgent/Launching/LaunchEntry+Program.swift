// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyCoordinator

extension LaunchEntry {
    /// Where systemd looks for a program without a path. See systemd.service(5), "Command lines".
    private static let searchPath = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]

    /// Why its program can't be run; nil if it can, or only the service manager or the bus knows.
    package var programFault: String? {
        guard case .command(let words) = action, let program = words.first else { return nil }
        if program.utf8.first == UInt8(ascii: "/") {
            return LaunchEntry.isExecutable(program) ? nil : "there is no program '\(program)'"
        }
        if LaunchEntry.searchPath.contains(where: { LaunchEntry.isExecutable("\($0)/\(program)") }) { return nil }
        return "there is no program '\(program)' in \(LaunchEntry.searchPath.joined(separator: ":"))"
    }

    private static func isExecutable(_ path: String) -> Bool {
        var facts = stat()
        return stat(path, &facts) == 0 && facts.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
    }
}
