// SPDX-License-Identifier: Apache-2.0

/// An observer of one of Core Foundation's centers, and its callback.
struct CFObserver: Sendable {
    /// The bits of the observer's pointer, which is never dereferenced here; 0 for nil.
    let pointer: UInt
    private let callback: CFNotificationCallback

    init(_ pointer: UnsafeRawPointer?, _ callback: @escaping CFNotificationCallback) {
        self.pointer = UInt(bitPattern: pointer)
        self.callback = callback
    }

    /// Calls the callback on the main queue, as the Darwin notify center does.
    @MainActor func call(_ center: CFNotificationCenter, _ name: CFNotificationName) {
        callback(center, UnsafeMutableRawPointer(bitPattern: pointer), name, nil, nil)
    }

    /// Calls the callback on this thread, as the local center does.
    func callHere(
        _ center: CFNotificationCenter,
        _ name: CFNotificationName,
        _ object: UnsafeRawPointer?,
        _ userInfo: CFDictionary?
    ) {
        typealias Callback = (
            CFNotificationCenter?, UnsafeMutableRawPointer?, CFNotificationName?, UnsafeRawPointer?, CFDictionary?
        ) -> Void
        // The two types differ in isolation only, which does not affect how a synchronous function is called. Where it
        // runs is up to the poster, as on Apple's systems; there the type of the callback says nothing about it.
        unsafeBitCast(callback, to: Callback.self)(
            center,
            UnsafeMutableRawPointer(bitPattern: pointer),
            name,
            object,
            userInfo
        )
    }
}

/// What distinguishes the centers.
protocol CenterBackend: Sendable {
    /// - Returns: what to report to the program.
    func add(_ observer: CFObserver, _ name: CFString?, _ object: UInt) -> CFNotificationError.Cause?

    /// - Parameters:
    ///   - name: nil means all names.
    ///   - object: 0 means all objects.
    func remove(_ observer: UInt, _ name: CFString?, _ object: UInt)

    /// - Returns: what to report to the program.
    func post(
        _ name: CFNotificationName,
        _ object: UnsafeRawPointer?,
        _ userInfo: CFDictionary?
    ) -> CFNotificationError.Cause?
}
