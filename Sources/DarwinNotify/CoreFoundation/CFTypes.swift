// SPDX-License-Identifier: Apache-2.0

/// The text type of Core Foundation's functions.
///
/// On Apple's systems this is a class that `String` is bridged to. Nothing is bridged on Linux, so here it is `String`
/// itself: `name as CFString` and `name as String` compile as they stand, with Foundation imported or without.
public typealias CFString = String

/// The dictionary type of Core Foundation's functions. The Darwin notify center carries none.
public typealias CFDictionary = [AnyHashable: Any]

/// A set of flags of Core Foundation's functions.
public typealias CFOptionFlags = UInt

/// The integer type of Core Foundation's functions.
public typealias CFIndex = Int
