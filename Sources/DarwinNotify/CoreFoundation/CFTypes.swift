// SPDX-License-Identifier: Apache-2.0

/// The string type of Core Foundation's functions.
///
/// On Apple's systems this is a class that `String` bridges to. There is no bridging on Linux, so here it is `String`
/// itself: `name as CFString` and `name as String` compile unchanged, with or without Foundation.
public typealias CFString = String

/// The dictionary type of Core Foundation's functions. The Darwin notify center carries none, the local one does.
public typealias CFDictionary = [AnyHashable: Any]

/// A set of flags of Core Foundation's functions.
public typealias CFOptionFlags = UInt

/// The integer type of Core Foundation's functions.
public typealias CFIndex = Int
