// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// A child and all that it had started when it was to end, except what a process had left behind that had ended by then.
///
/// They are known by descriptors: once their parents have ended, nothing else shows where they belong.
struct EndingProcesses {
    private let process: pid_t
    private var descriptors: [Int32]

    init(_ process: pid_t) {
        self.process = process
        let all = [process] + (ProcessList.descendants(of: process) ?? []).map(\.pid)
        descriptors = all.map { linux_pidfd_open($0) }.filter { $0 >= 0 }
    }

    func signal(_ number: Int32) {
        // A sandbox may forbid such descriptors. It is a child of ours that has not been reaped.
        if descriptors.isEmpty { kill(process, number) }
        for descriptor in descriptors { _ = linux_pidfd_signal(descriptor, number) }
    }

    /// What becomes readable when one of them has ended.
    var requests: [pollfd] { descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) } }

    /// Whether all have ended.
    mutating func haveEnded() -> Bool {
        var requests = requests
        poll(&requests, nfds_t(requests.count), 0)
        for request in requests where request.revents != 0 { close(request.fd) }
        descriptors = requests.filter { $0.revents == 0 }.map(\.fd)
        guard descriptors.isEmpty else { return false }
        // It is not reaped, so that its number belongs to no other process.
        var facts = siginfo_t()
        return waitid(P_PID, id_t(process), &facts, WEXITED | WNOHANG | WNOWAIT) != 0 || facts.si_signo != 0
    }
}
