// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Times in a form for people and programs alike: RFC 3339, local, with milliseconds and the offset.
package enum LocalTime {
    package static func append(nanosecondsSince1970 time: Int64, to record: inout [UInt8]) {
        var (whole, rest) = time.quotientAndRemainder(dividingBy: 1_000_000_000)
        if rest < 0 { (whole, rest) = (whole - 1, rest + 1_000_000_000) }
        var seconds = time_t(whole)
        var local = tm()
        localtime_r(&seconds, &local)
        append(Int(local.tm_year) + 1900, 4, to: &record)
        record.append(UInt8(ascii: "-"))
        append(Int(local.tm_mon) + 1, 2, to: &record)
        record.append(UInt8(ascii: "-"))
        append(Int(local.tm_mday), 2, to: &record)
        record.append(UInt8(ascii: "T"))
        append(Int(local.tm_hour), 2, to: &record)
        record.append(UInt8(ascii: ":"))
        append(Int(local.tm_min), 2, to: &record)
        record.append(UInt8(ascii: ":"))
        append(Int(local.tm_sec), 2, to: &record)
        record.append(UInt8(ascii: "."))
        append(Int(rest) / 1_000_000, 3, to: &record)
        let minutes = local.tm_gmtoff / 60
        record.append(UInt8(ascii: minutes < 0 ? "-" : "+"))
        append(abs(minutes) / 60, 2, to: &record)
        record.append(UInt8(ascii: ":"))
        append(abs(minutes) % 60, 2, to: &record)
    }

    package static func text(nanosecondsSince1970 time: Int64) -> String {
        var bytes: [UInt8] = []
        append(nanosecondsSince1970: time, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func append(_ number: Int, _ digits: Int, to record: inout [UInt8]) {
        var divisor = 1
        for _ in 1..<digits { divisor *= 10 }
        while divisor > 0 {
            record.append(UInt8(ascii: "0") + UInt8(number / divisor % 10))
            divisor /= 10
        }
    }
}
