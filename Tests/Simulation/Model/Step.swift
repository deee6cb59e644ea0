// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// What happens next in a simulation. A history is a list of steps. Impossible steps are skipped, so any of them can be
/// left out.
package enum Step: Equatable, Sendable {
    /// The bus processes the next message of a connection.
    case route(Int)
    /// A program processes the next message of its connection, or connects.
    case observer(Int)
    case agent
    /// A person reads an answer.
    case control(Int)
    /// The agent processes what it has learned by other means than the bus.
    case news
    /// The agent reads a part of a stopped process's stream.
    case stream(Int)
    /// The agent notices that a process was stopped or continued.
    case notice(Int)
    case post(poster: Int, name: Int)
    /// A poster's socket accepts more of what is queued.
    case poster(Int)
    case cutPoster(Int)
    /// The callback that is called next takes long.
    case slow(observer: Int)
    /// A program's callback that took long returns, or the next one is called.
    case callback(observer: Int)
    /// The bus ends; another is started.
    case endBus(readable: Int)
    case startBus
    /// A poster returns from `main`.
    case endPoster(Int)
    /// A registration is entered, or canceled.
    case observe(Int, Int)
    case cancel(Int)
    /// A program carries out what was entered.
    case carryOut(Int)
    /// A person asks the agent for a state of all that a process observes with, of a connection or of an application.
    case change(process: Int, LifecycleState, freezes: Bool, by: Int)
    case changeOne(observer: Int, LifecycleState, by: Int)
    case changeApplication(LifecycleState, freezes: Bool, by: Int)
    /// A person undoes that for a process, for the application or for everybody.
    case release(process: Int, by: Int)
    case releaseApplication(by: Int)
    case releaseAll(by: Int)
    case report(Int, LifecycleState)
    case stop(process: Int, tears: Bool)
    case go(process: Int)
    case kill(process: Int)
    case cut(observer: Int, readable: Int)
    /// The screen is locked or unlocked.
    case lock(Bool)
    /// The machine goes to sleep, or has woken up.
    case sleep(Bool)
    /// A source knows something else about the focus.
    case focus(source: Int, Desktop.Focus)
    /// The application begins to play sound, or stops.
    case sound(Bool)
    /// A program opts in to following the desktop, or out.
    case follow(Int, Bool)
    /// A program sets the state of a name.
    case setNameState(Int, name: Int, value: UInt64)
    case startAgent
    case killAgent
    case endAgent
    /// The agent is to be replaced, or restarted, in good order: it hands over when it can, and then another one is started.
    case replaceAgent
    case handOver
    /// An agent reads a part of what the bus has queued for the one before it, whose connection may also be lost.
    case readPredecessor
    case cutPredecessor(readable: Int)
    /// The clock advances to the next time that is waited for.
    case time
    /// Everything that is under way is processed, in an order that the number determines, and the promises are checked.
    case rest(UInt64)
}
