// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A pipe; a child inherits neither end unless it is passed explicitly.
func makePipe() throws -> (readEnd: Int32, writeEnd: Int32) {
    var ends: [Int32] = [-1, -1]
    guard pipe2(&ends, O_CLOEXEC) == 0 else { throw TestSupportError("Cannot make a pipe: \(lastError())") }
    return (ends[0], ends[1])
}

/// Starts a program in its own process group, with default signals and only the given descriptors.
///
/// - Parameters:
///   - path: The program, looked up in `PATH` if there is no slash in it.
///   - environment: What differs from this process's environment; nil removes a variable.
///   - descriptors: The child's descriptor numbers, below 64, and what they are here. 0, 1 and 2 are `/dev/null`
///     unless named.
func spawn(
    _ path: String,
    _ arguments: [String],
    environment: [String: String?] = [:],
    descriptors: [Int32: Int32]
) throws -> pid_t {
    // Moved out of the way first, so that no number is overwritten before it is copied.
    var copies: [Int32: Int32] = [:]
    defer { for copy in copies.values { close(copy) } }
    for (number, descriptor) in descriptors {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 64)
        guard copy >= 0 else { throw TestSupportError("Cannot copy descriptor \(descriptor): \(lastError())") }
        copies[number] = copy
    }

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    let count = max(3, (descriptors.keys.max() ?? 0) + 1)
    for number in 0..<count {
        if let copy = copies[number] {
            posix_spawn_file_actions_adddup2(&actions, copy, number)
        } else if number < 3 {
            posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0)
        } else {
            posix_spawn_file_actions_addclose(&actions, number)
        }
    }
    _ = addCloseFrom?(&actions, count)

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    posix_spawnattr_setflags(&attributes, Int16(flags))

    var pid: pid_t = 0
    let error = withCStrings([path] + arguments) { arguments in
        withCStrings(merged(environment)) { posix_spawnp(&pid, path, &actions, &attributes, arguments, $0) }
    }
    guard error == 0 else { throw TestSupportError("Cannot run \(path): \(String(cString: strerror(error)))") }
    return pid
}

private func merged(_ changes: [String: String?]) -> [String] {
    // The output of compilers, shells and readelf is compared, and would otherwise be translated.
    let changes = ["LC_ALL": "C.UTF-8"].merging(changes) { $1 }
    var variables: [String] = []
    var next = environ
    while let variable = next.pointee {
        let text = String(cString: variable)
        if changes[String(text.prefix { $0 != "=" })] == nil { variables.append(text) }
        next += 1
    }
    return variables + changes.compactMap { name, value in value.map { "\(name)=\($0)" } }
}

private func withCStrings<Result>(
    _ strings: [String],
    _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
) -> Result {
    let copies = strings.map { strdup($0) } + [nil]
    defer { for copy in copies { free(copy) } }
    return body(copies)
}

// The Glibc module is built without _GNU_SOURCE, so these two must be declared explicitly.

private typealias Pipe2 = @convention(c) (UnsafeMutablePointer<Int32>, Int32) -> Int32
private typealias AddCloseFrom = @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32

/// `pipe` with a later `fcntl` is not enough: another thread may spawn in between.
private let pipe2: Pipe2 = {
    guard let symbol = dlsym(nil, "pipe2") else { preconditionFailure("This C library has no pipe2") }
    return unsafeBitCast(symbol, to: Pipe2.self)
}()

/// Excludes descriptors that code under test forgot to mark; glibc 2.34 and later.
private let addCloseFrom: AddCloseFrom? = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np").map {
    unsafeBitCast($0, to: AddCloseFrom.self)
}
