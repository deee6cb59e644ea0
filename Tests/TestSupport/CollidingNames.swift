// SPDX-License-Identifier: Apache-2.0

import Collisions

/// Up to 65,536 names with the same 64-bit FNV-1a hash. Generated once, in a few seconds.
public let collidingNames: [String] = {
    let buffer = UnsafeMutablePointer<colliding_name>.allocate(capacity: 65_536)
    defer { buffer.deallocate() }
    let count = colliding_names(buffer, 65_536)
    return (0..<Int(count)).map { index in
        withUnsafeBytes(of: &buffer[index].text) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }
}()
