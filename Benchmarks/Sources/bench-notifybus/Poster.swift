// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus

/// Reads commands from standard input, posts, and answers with times. See Peers/harness.c.
struct Poster {
    let center: NotifyCenter
    /// Whether names are checked once beforehand instead of at each post.
    let isPrepared: Bool

    /// Where the observer's records come from.
    private let records = getenv("RECORDS_FD").map { atoi($0) } ?? -1

    mutating func obey() throws {
        // So that each post is written at once.
        try center.connect(timeout: .seconds(10))
        while let line = readLine() {
            let words = line.split(separator: " ").map(String.init)
            let numbers = words.map { Int($0) ?? 0 }
            switch (words.first, words.count) {
            case ("latency", 4): try latency(numbers[1], pause: numbers[2], words[3])
            case ("burst", 6):
                try burst(numbers[1], words[2], names: numbers[3], flush: numbers[4], end: numbers[5] != 0)
            case ("route", 3): try route(numbers[1], words[2])
            case ("steps", 3): try steps(numbers[1], words[2])
            case ("register", 3): try register(numbers[1], words[2])
            default: print(center.statistics.posted, center.statistics.coalescedPosts)
            }
            fflush(nil)
        }
    }

    private func latency(_ count: Int, pause: Int, _ text: String) throws {
        var times: [Int] = []
        for _ in 0..<count {
            let began = now()
            try center.post(NotifyName(text))
            times.append(readRecord() - began)
            usleep(UInt32(pause))
        }
        print(times.map(String.init).joined(separator: " "))
    }

    private func burst(_ count: Int, _ prefix: String, names nameCount: Int, flush: Int, end: Bool) throws {
        let strings = nameCount == 1 ? [prefix] : (0..<nameCount).map { "\(prefix).n\($0)" }
        let began: Int
        if isPrepared {
            let names = try strings.map { try NotifyName($0) }
            began = now()
            for index in 1...count {
                try center.post(names[index % nameCount])
                if flush != 0, index % flush == 0 { try center.flush(timeout: nil) }
            }
        } else {
            began = now()
            for index in 1...count {
                try center.post(NotifyName(strings[index % nameCount]))
                if flush != 0, index % flush == 0 { try center.flush(timeout: nil) }
            }
        }
        if end { try center.post(NotifyName("\(prefix).end")) }
        try center.flush(timeout: nil)
        print(began, now())
    }

    private func route(_ count: Int, _ text: String) throws {
        let began = now()
        for _ in 0..<count { try center.post(NotifyName(text)) }
        try center.synchronize(timeout: nil)
        print(now() - began)
    }

    private func steps(_ count: Int, _ text: String) throws {
        var times: [Int] = []
        for _ in 0..<count {
            let began = now()
            try center.post(NotifyName(text))
            try center.synchronize(timeout: nil)
            times.append(now() - began)
        }
        print(times.map(String.init).joined(separator: " "))
    }

    private func register(_ count: Int, _ prefix: String) throws {
        var (adding, cancelling) = (0, 0)
        for index in 0..<count {
            let name = try NotifyName("\(prefix).n\(index)")
            let began = now()
            let observation = try center.addObserver(for: name, timeout: .seconds(25)) { _ in }
            let observed = now()
            try observation.cancelAndWait(timeout: nil)
            adding += observed - began
            cancelling += now() - observed
        }
        print(adding, cancelling)
    }

    private func readRecord() -> Int {
        var record = (Int64(0), Int64(0))
        let length = withUnsafeMutableBytes(of: &record) { read(records, $0.baseAddress, $0.count) }
        guard length == MemoryLayout.size(ofValue: record) else { fail("The observer has ended.") }
        return Int(record.0)
    }
}
