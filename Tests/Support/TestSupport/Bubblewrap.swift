// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Runs programs with a root folder that lacks or adds files. See bwrap(1).
public enum Bubblewrap {
    /// Why it can't be used here, or nil.
    public static let obstacle: String? = {
        guard isInstalled("bwrap") else { return "bwrap is not installed" }
        do {
            let result = try run("bwrap", arguments() + ["true"])
            return result.status == 0 ? nil : "bubblewrap can't run here: \(result.errorOutput)"
        } catch {
            return "bubblewrap can't run here: \(error)"
        }
    }()

    /// The arguments of `bwrap`, before a command and its arguments.
    ///
    /// - Parameters:
    ///   - missing: names to hide in the root folder.
    ///   - files: the paths of files to add, and the paths of their contents.
    public static func arguments(without missing: Set<String> = [], files: [String: String] = [:]) -> [String] {
        // The real root folder can't take another file, so this creates a copy of its entries.
        var result = ["--die-with-parent"]
        for name in entries(ofFolder: "/") where !missing.contains(name) && files["/" + name] == nil {
            let path = "/" + name
            if name == "dev" {
                result += ["--dev-bind", path, path]
                continue
            }
            if let target = linkTarget(path) {
                result += ["--symlink", target, path]
            } else {
                result += ["--ro-bind", path, path]
            }
        }
        for (path, source) in files { result += ["--ro-bind", source, path] }
        return result + ["--"]
    }
}
