// SPDX-License-Identifier: Apache-2.0

/// With whom what the agent has is shared: one owner's calls neither delay nor displace another's.
///
/// Other users are one owner each. Programs of the agent's own user are owners by themselves; otherwise, on a session bus,
/// all would depend on the worst of them.
package struct Owner: Hashable, Sendable {
    package enum Program: Hashable, Sendable {
        case process(Int32)
        /// An application in a sandbox, with all its processes: a portal starts as many for it as it asks for.
        case sandbox(String)
        /// What the bus can't tell apart.
        case unknown
    }

    package let user: UInt32
    /// Nil if all programs of the user are one owner.
    package let program: Program?

    package init(user: UInt32, program: Program? = nil) {
        self.user = user
        self.program = program
    }

    package init(user: UInt32, program: Program, agentUser: UInt32?) {
        self.init(user: user, program: user == agentUser ? program : nil)
    }

    package init(_ process: ProcessID, agentUser: UInt32?) {
        self.init(user: process.user, program: .process(process.pid), agentUser: agentUser)
    }
}

extension Owner: CustomStringConvertible {
    package var description: String {
        switch program {
        case nil: "User \(user)"
        case .process(let pid): "Process \(pid)"
        case .sandbox(let application): "The sandboxed application \(application)"
        case .unknown: "A program of user \(user)"
        }
    }
}
