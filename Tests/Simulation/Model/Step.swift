// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// What happens next in a simulation. A history is a list of these: one that is impossible is passed over, so that any
/// of them can be left out.
package enum Step: Equatable, Sendable {
    /// The bus works on the next message of a connection.
    case route(Int)
    /// A program works on the next message of its connection, or connects.
    case observer(Int)
    case agent
    case control
    /// The agent takes note of what it has learned beside the bus.
    case news
    /// The agent reads a piece of the stream of a stopped process.
    case stream(Int)
    /// The agent notices that a process stands still, or no longer.
    case notice(Int)
    case post(poster: Int, name: Int)
    case observe(Int, Int)
    case cancel(Int)
    case change(process: Int, LifecycleState, freezes: Bool)
    case changeOne(observer: Int, LifecycleState)
    case release(process: Int)
    case releaseAll
    case report(Int, LifecycleState)
    case stop(process: Int, tears: Bool)
    case go(process: Int)
    case kill(process: Int)
    case cut(observer: Int, readable: Int)
    /// The screen is locked, or no longer.
    case lock(Bool)
    /// The machine goes to sleep, or has woken up.
    case sleep(Bool)
    /// A source knows something else about the focus.
    case focus(source: Int, Desktop.Focus)
    /// A program asks to follow the desktop, or no longer.
    case follow(Int, Bool)
    /// A program sets the state of a name.
    case setNameState(Int, name: Int, value: UInt64)
    case startAgent
    case killAgent
    case endAgent
    /// The clock goes on to the next moment that somebody waits for.
    case time
    /// Everything that is under way is worked on, in an order that the number decides, and what was promised is checked.
    case rest(UInt64)
}
