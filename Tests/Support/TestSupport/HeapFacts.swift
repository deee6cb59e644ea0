// SPDX-License-Identifier: Apache-2.0

import Glibc

/// How many bytes the program has allocated and not freed; nil if the allocator is not glibc's, as under a sanitizer.
///
/// More exact than resident memory, which depends on how the allocator spreads threads over its arenas. See
/// malloc_info(3).
public func heapBytesInUse() -> Int? {
    typealias MallocInfo = @convention(c) (Int32, UnsafeMutablePointer<FILE>) -> Int32
    guard dlsym(nil, "__tsan_init") == nil, dlsym(nil, "__asan_init") == nil,
        let symbol = dlsym(nil, "malloc_info")
    else { return nil }
    var text: UnsafeMutablePointer<CChar>?
    var length = 0
    guard let stream = open_memstream(&text, &length) else { return nil }
    let status = unsafeBitCast(symbol, to: MallocInfo.self)(0, stream)
    fclose(stream)
    defer { free(text) }
    guard status == 0, let text else { return nil }
    // The totals of all arenas are last.
    let lines = String(cString: text).split(separator: "\n").reversed()
    func size(_ beginning: String) -> Int? {
        lines.first { $0.hasPrefix(beginning) }
            .flatMap { $0.split(separator: "\"").last { Int($0) != nil } }
            .flatMap { Int($0) }
    }
    guard let system = size("<system type=\"current\""), let fast = size("<total type=\"fast\""),
        let rest = size("<total type=\"rest\""), let mapped = size("<total type=\"mmap\"")
    else { return nil }
    return system - fast - rest + mapped
}
