// SPDX-License-Identifier: Apache-2.0

/// A break of the protocol, to see that the simulation finds it. Each replaces what a program does about an effect.
package enum Mutation: String, CaseIterable, Sendable {
    case gateOpensBeforeRules = "the observer says that it hears before the bus has its rules"
    case keepsRules = "the observer leaves its rules on the bus"
    case keepsNoDeadline = "the observer waits for ever for an agent that has gone"
    case confirmsAtOnce = "registrations are confirmed before the agent has said which state they begin in"
    case forgetsNames = "the observer does not tell the agent of names that come later"
    case marksAtOnce = "posts set bits from the moment on at which the names are held"
    case neverMarks = "posts set no bits"
    case deliversNothing = "the agent keeps what was posted while a program was suspended"
    case confirmsDelivery = "the agent takes what it delivers for read at once"
    case deliversTwice = "the agent delivers what was posted twice"
    case narrowsFirst = "the agent gives the rules of prefixes up before the bus has the one for all names"
    case handsBackEarly = "the agent hands back before it knows who has sent what it holds back"
    case forgetsHeldBack = "what an observer holds back is lost with its connection"
    case believesAnybody = "a post of a name that has an owner is believed whoever has sent it"
    case overtakes = "posts overtake one of the same sender that is held back"
    case forgetsThaw = "a process that was frozen is never let go on"
    case ignoresStream = "the agent parks a stopped program and forgets what it has read of its stream"
    case forgetsAnswer = "a call is not answered"
    case forgetsProcess = "the agent does not learn that a process has ended"
}
