// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// Posts names one after another so that none is coalesced.
struct Poster {
    private let center: NotifyCenter
    /// When the whole command must be done; nil if the bus may take its time, as long as it answers.
    private let deadline: Deadline?
    /// How long the bus may take for each answer if there is no deadline.
    private let busLimit: Duration
    private var unconfirmed = 0
    private var hasOwnedName = false
    /// Whether the bus has answered once.
    private var isConnected = false
    /// How many names were posted.
    private(set) var count = 0
    /// Whether an agent did not ask in time who posted.
    private(set) var isAgentLate = false

    init(_ center: NotifyCenter, until deadline: Deadline?, busLimit: Duration = Deadline.busLimit) {
        self.center = center
        self.deadline = deadline
        self.busLimit = busLimit
    }

    /// Posts a name, and from time to time waits for the bus.
    ///
    /// - Returns: whether the bus has confirmed this post and all earlier ones.
    mutating func post(_ name: NotifyName) throws(PostFailure) -> Bool {
        do throws(NotifyBusError) {
            try center.postOnceConnected(name)
        } catch {
            throw failure(error)
        }
        count += 1
        if !hasOwnedName, name.string.utf8.starts(with: "user.uid.".utf8) {
            hasOwnedName = true
        }
        // The center coalesces equal names once 4,096 posts are queued; here far fewer ever are.
        unconfirmed += 1
        if unconfirmed < 1_000 { return false }
        try confirm()
        return true
    }

    /// Returns when the bus has answered, and so has accepted every post.
    mutating func confirm(isLast: Bool = false) throws(PostFailure) {
        do throws(NotifyBusError) {
            if isLast {
                isAgentLate = try !center.synchronizeToEnd(timeout: deadline?.remaining ?? busLimit)
            } else {
                try center.synchronize(timeout: deadline?.remaining ?? busLimit)
            }
        } catch {
            throw failure(error)
        }
        unconfirmed = 0
        isConnected = true
    }

    /// Returns when the bus has accepted every post, and an agent and observers that verify the sender have been able to.
    mutating func finish() throws(PostFailure) {
        // An agent asks who posted, even if the bus has long accepted the posts.
        if count > 0 { try confirm(isLast: true) }
        // Those who hear of a `user.uid.` name ask the bus who posted it, and the bus knows only who is still there.
        if hasOwnedName { poll(nil, 0, 250) }
    }

    private func failure(_ error: NotifyBusError) -> PostFailure {
        switch error.code {
        case .timedOut where deadline != nil: .timedOut("the bus did not accept every post")
        case .timedOut: PostFailure("the bus did not answer; it may be stopped or overloaded", code: .unavailable)
        case .noBus where isConnected, .disconnected where isConnected:
            PostFailure("the bus went away", code: .unavailable)
        default: PostFailure(error)
        }
    }
}

/// Why not everything was posted.
struct PostFailure: Error {
    let message: String
    let code: ExitCode
    /// Whether the name is to blame, and the next one may fare better.
    let isOfName: Bool

    init(_ message: String, code: ExitCode, isOfName: Bool = false) {
        self.message = message
        self.code = code
        self.isOfName = isOfName
    }

    init(_ error: NotifyBusError) {
        let isOfName = error.code == .invalidName || error.code == .notPermitted
        self.init(error.description, code: ExitCode(error), isOfName: isOfName)
    }

    static func timedOut(_ what: String) -> PostFailure {
        PostFailure("\(what) in time", code: .timedOut)
    }

    func at(line: Int, _ consequence: String) -> PostFailure {
        // The library's sentences end with a full stop.
        let reason = message.hasSuffix(".") ? String(message.dropLast()) : message
        return PostFailure("line \(line): \(reason); \(consequence)", code: code)
    }
}
