// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

/// An observing connection that has registered.
///
/// `@unchecked Sendable`, like all that belongs to the agent: only the thread that reads touches it.
final class ManagedConnection: @unchecked Sendable {
    /// How far the parking of a connection has come.
    enum Parking {
        case none
        /// The names are being held, and the stream is read up to the mark.
        case draining
        /// The bus has forgotten the connection; the entry waits for the process to come back.
        case parked
    }

    /// By which rule the bus tells that the connection has ended.
    enum NameWatch { case none, own, shared }

    /// The unique name.
    let name: String
    /// Told apart from others by the watcher's thread.
    let number: UInt64
    let process: ManagedProcess
    let user: UInt32
    var program: String
    var subjects: Subjects
    var transition: Transition<ChangeRequest>
    var pending = PendingNames()
    /// How many posts the observer has dropped, as it said last.
    var dropped: UInt64 = 0
    /// Since when it is in its state.
    var since = WallClock.now
    var parking = Parking.none
    /// What a connection is to be in when its process runs again.
    var stateAfterParking = LifecycleState.foreground
    /// Whether posts are to set bits from the moment on at which it is told its state.
    var isToBeMarked = false
    /// What the hold table has for it.
    var held = Subjects()
    /// Whether its end is learned from the bus, because it gave no socket.
    var nameWatch = NameWatch.none
    /// Whether its state is the one it was in under an agent before this one.
    var isRemembered: Bool
    /// What a person has set for it, and has not released.
    var person: LifecycleState?
    /// What a source of an agent before this one decided; until this agent's source has said something.
    var remembered: Decision?
    /// Whether it has asked to follow the desktop.
    var followsDesktop: Bool
    /// What it is to be in, and by whose word.
    var decision = Decision(.foreground, by: .rule)
    /// Who the observer believes has decided that.
    var toldDecider: Decider
    /// A duplicate of its socket, or -1.
    private(set) var socket: Int32

    init(
        name: String,
        number: UInt64,
        process: ManagedProcess,
        user: UInt32,
        registration: Registration
    ) {
        self.name = name
        self.number = number
        self.process = process
        self.user = user
        program = registration.program
        isRemembered = registration.state != nil
        toldDecider = registration.believedDecider
        followsDesktop = registration.followsDesktop
        subjects = registration.subjects
        socket = registration.socket.take()
        transition = Transition(.foreground)
    }

    /// Puts a new connection into its first state, in which the agent answers its registration.
    func begin(in state: LifecycleState) {
        transition = Transition(state, isHolding: state == .suspended)
    }

    deinit { closeSocket() }

    var state: LifecycleState { transition.state }

    func closeSocket() {
        if socket >= 0 { close(socket) }
        socket = -1
    }

    /// Gives the socket away.
    func takeSocket() -> Int32 {
        defer { socket = -1 }
        return socket
    }

    func replaceSocket(by other: Int32) {
        closeSocket()
        socket = other
    }

    /// Whether the bus may queue posts for the connection, so that a stop of its process would do harm.
    var mayBeQueuedFor: Bool {
        guard case .none = parking else { return false }
        return !(transition.isSettled && state != .foreground)
    }
}

/// The time of day.
enum WallClock {
    /// Seconds since 1970.
    static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(time.tv_sec)
    }
}

/// A descriptor that is closed unless somebody takes it.
///
/// `@unchecked Sendable`, like all that belongs to the agent: only the thread that reads touches it.
final class DescriptorBox: @unchecked Sendable {
    private var descriptor: Int32

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close() }

    var value: Int32 { descriptor }

    func take() -> Int32 {
        defer { descriptor = -1 }
        return descriptor
    }

    func close() {
        let descriptor = take()
        if descriptor >= 0 { Glibc.close(descriptor) }
    }
}
