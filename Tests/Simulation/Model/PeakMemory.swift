// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The most memory that this process has occupied at once. See proc(5).
enum PeakMemory {
    /// Counts from now on.
    static func reset() {
        guard let file = fopen("/proc/self/clear_refs", "w") else { return }
        fputs("5", file)
        fclose(file)
    }

    /// In bytes, since `reset`.
    static var bytes: Int {
        guard let file = fopen("/proc/self/status", "r") else { return 0 }
        defer { fclose(file) }
        var kilobytes = 0
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { line in
            guard let text = line.baseAddress else { return }
            while fgets(text, Int32(line.count), file) != nil {
                if strncmp(text, "VmHWM:", 6) == 0 { kilobytes = strtol(text + 6, nil, 10) }
            }
        }
        return kilobytes << 10
    }
}
