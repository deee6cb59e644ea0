// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// The format of notifications on standard output.
struct RecordFormat {
    private enum Piece {
        case literal([UInt8])
        case name, jsonName
        case time
        case count
        case state
    }

    private var pieces: [Piece] = []

    static let plain = RecordFormat(pieces: [.name])

    static let json = RecordFormat(pieces: [
        .literal(Array(#"{"name":""#.utf8)), .jsonName, .literal(Array(#"","time":""#.utf8)), .time,
        .literal(Array(#"","count":"#.utf8)), .count, .literal(Array("}".utf8)),
    ])

    private init(pieces: [Piece]) {
        self.pieces = pieces
    }

    /// The format that the value of `--format` describes.
    init(parsing argument: Argument) throws(UsageError) {
        var literal: [UInt8] = []
        var bytes = argument.bytes.makeIterator()
        while let byte = bytes.next() {
            switch byte {
            case UInt8(ascii: "%"):
                let letter = bytes.next()
                if letter == byte {
                    literal.append(byte)
                    continue
                }
                guard let piece = Self.piece(letter) else {
                    throw UsageError(Self.message("%", letter, "%n, %t, %c, %s and %%"))
                }
                if !literal.isEmpty { pieces.append(.literal(literal)) }
                literal = []
                pieces.append(piece)
            case UInt8(ascii: "\\"):
                let letter = bytes.next()
                guard let meaning = Self.escape(letter) else {
                    throw UsageError(Self.message("\\", letter, "\\n, \\t, \\0 and \\\\"))
                }
                literal.append(meaning)
            default:
                literal.append(byte)
            }
        }
        if !literal.isEmpty { pieces.append(.literal(literal)) }
    }

    /// Whether it includes the state of a name.
    var hasState: Bool {
        pieces.contains { if case .state = $0 { true } else { false } }
    }

    /// Appends the record of a notification, without its terminator.
    ///
    /// - Parameter state: the state of the name; nil if unknown.
    /// - Parameter isForTerminal: whether control characters in a name are escaped. Anyone on the bus may post
    ///   anything.
    func write(
        _ arrival: Notification,
        count: Int,
        state: UInt64? = nil,
        isForTerminal: Bool = false,
        to record: inout [UInt8]
    ) {
        write(arrival.name.string, arrival.time, count: count, state: state, isForTerminal: isForTerminal, to: &record)
    }

    /// The same for any text in place of a name.
    func write(
        _ name: String,
        _ time: timespec,
        count: Int,
        state: UInt64?,
        isForTerminal: Bool,
        to record: inout [UInt8]
    ) {
        for piece in pieces {
            switch piece {
            case .literal(let bytes): record += bytes
            case .name:
                record += (isForTerminal ? Printable.text(name) : name).utf8
            case .jsonName: JSONText.append(name, to: &record, isForTerminal: isForTerminal)
            case .time: LocalTime.append(time, to: &record)
            case .count: record += String(count).utf8
            case .state: record += (state.map { String($0) } ?? "-").utf8
            }
        }
    }

    private static func piece(_ letter: UInt8?) -> Piece? {
        switch letter {
        case UInt8(ascii: "n"): .name
        case UInt8(ascii: "t"): .time
        case UInt8(ascii: "c"): .count
        case UInt8(ascii: "s"): .state
        default: nil
        }
    }

    private static func escape(_ letter: UInt8?) -> UInt8? {
        switch letter {
        case UInt8(ascii: "n"): UInt8(ascii: "\n")
        case UInt8(ascii: "t"): UInt8(ascii: "\t")
        case UInt8(ascii: "0"): 0
        case UInt8(ascii: "\\"): UInt8(ascii: "\\")
        default: nil
        }
    }

    private static func message(_ introducer: String, _ letter: UInt8?, _ known: String) -> String {
        guard let letter else { return "incomplete sequence '\(introducer)' at the end; the known ones are \(known)" }
        let text = withUnsafeBytes(of: letter) { Printable.text($0) }
        return "unknown sequence '\(introducer)\(text)'; the known ones are \(known)"
    }
}
