// SPDX-License-Identifier: Apache-2.0

// What witness.c does, through NotifyBus, and more: it observes prefixes, reports its own state, and says until when the
// bus has routed what it has posted.
//
// Usage: chaos-witness FILE BUS-SOCKET [CENTERS], observing through so many centers by turns, with the commands of witness.c and these:
//
//     prefix NAME         observes everything that begins so
//     report STATE        reports this state of the program
//     set NAME NUMBER     sets the state of a name

import Glibc
import NotifyBus
import NotifyCore

typealias NotifyCenter = NotifyBus.NotifyCenter
typealias NotifyName = NotifyBus.NotifyName
typealias NotifySubject = NotifyBus.NotifySubject

/// Writes a line for each thing that was done or heard.
struct Record: Sendable {
    private let file: Int32

    init(_ path: String) {
        file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        if file < 0 { exit(73) }
    }

    static var now: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    func write(_ what: String, since begin: Int = Record.now, status: Int = 0, _ name: String) {
        let line = Array("\(what) \(begin) \(Record.now) \(status) \(name)\n".utf8)
        var rest = line[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count < 0 && errno != EINTR { exit(74) }
            rest = rest.dropFirst(max(0, count))
        }
    }
}

struct Witness {
    let record: Record
    let busPath: String
    let center = NotifyCenter.session
    /// Each has a connection of its own.
    let centers: [NotifyCenter]
    var observations: [String: NotifyCenter.Observation] = [:]

    /// Does something, and writes down whether it succeeded.
    func note(_ what: String, _ name: String, _ action: () throws -> Void) {
        let begin = Record.now
        do {
            try action()
            record.write(what, since: begin, name)
        } catch {
            record.write(what, since: begin, status: 1, "\(name) \(error)")
        }
    }

    mutating func add(_ name: String, prefix: String? = nil) {
        var observation: NotifyCenter.Observation?
        note("R", name) {
            let subject: NotifySubject =
                if let prefix { .prefix(try NotifyPrefix(prefix)) } else { .name(try NotifyName(name)) }
            let center = centers[observations.count % centers.count]
            observation = try center.addObserver(matching: subject, timeout: .seconds(25)) { [record] name in
                record.write("H", "\(name)")
            }
        }
        observations[name] = observation
    }

    mutating func cancel(_ name: String) {
        guard let observation = observations.removeValue(forKey: name) else { return }
        note("C", name) { try observation.cancelAndWait(timeout: nil) }
    }

    /// Reads the state of a name.
    func get(_ name: String) {
        let begin = Record.now
        do {
            record.write("G", since: begin, "\(name) \(try center.core.state(of: CoreName(name)))")
        } catch {
            record.write("G", since: begin, status: 1, "\(name) 0 \(error)")
        }
    }

    /// Shuts down the connections to the bus, as the bus would.
    func cut() {
        note("X", "-") {
            for number in Int32(0)..<1_024 {
                var peer = sockaddr_un()
                var length = socklen_t(MemoryLayout<sockaddr_un>.size)
                let isKnown = withUnsafeMutablePointer(to: &peer) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(number, $0, &length) == 0 }
                }
                guard isKnown, peer.sun_family == AF_UNIX else { continue }
                let path = withUnsafeBytes(of: peer.sun_path) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
                if path == busPath { shutdown(number, Int32(SHUT_RDWR)) }
            }
        }
    }

    mutating func perform(_ command: Substring, _ argument: String) {
        switch command {
        case "add": add(argument)
        case "prefix": add(argument + "*", prefix: argument)
        case "cancel": cancel(argument)
        case "post":
            note("P", argument) { try center.core.postOnceConnected(CoreName(argument)) }
        case "flush": note("Y", "-") { try center.synchronize(timeout: .seconds(5)) }
        case "report":
            let states: [String: NotifyCenter.Lifecycle.State] = [
                "foreground": .foreground, "background": .background, "suspended": .suspended,
            ]
            if let state = states[argument] {
                note("S", argument) { try center.lifecycle.report(state, timeout: .seconds(10)) }
            }
        case "set":
            let words = argument.split(separator: " ")
            note("V", argument) { try center.core.setState(UInt64(words[1]) ?? 0, of: CoreName(String(words[0]))) }
        case "get": get(argument)
        case "cut": cut()
        case "sync":
            print(argument)
            fflush(nil)
        default: break
        }
    }
}

guard CommandLine.arguments.count >= 3 else { exit(64) }
let count = CommandLine.arguments.count > 3 ? Int(CommandLine.arguments[3]) ?? 1 : 1
var witness = Witness(
    record: Record(CommandLine.arguments[1]),
    busPath: CommandLine.arguments[2],
    centers: [.session] + (1..<max(1, count)).map { _ in NotifyCenter() }
)
while let line = readLine() {
    let words = line.split(separator: " ", maxSplits: 1)
    guard let command = words.first else { continue }
    witness.perform(command, words.count > 1 ? String(words[1]) : "")
}
