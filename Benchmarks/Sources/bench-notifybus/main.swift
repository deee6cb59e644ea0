// SPDX-License-Identifier: Apache-2.0

// The measuring program on NotifyBus. It speaks the protocol of Peers/harness.c:
//
//     bench-notifybus observer ADDRESS INTERFACE PREFIX COUNT REPORT [callback|queue|sequence|once|centers]
//     bench-notifybus poster ADDRESS INTERFACE [string|name]
//
// The interface is ignored: the name is in it. 'queue' has the callbacks on a dispatch queue, 'sequence' iterates over
// an AsyncSequence, 'once' observes all names with one call, 'centers' each name on a connection of its own. 'name' posts names that were checked once, beforehand.

import Glibc
import NotifyBus

let arguments = CommandLine.arguments
do {
    if arguments.count >= 7, arguments[1] == "observer", let count = Int(arguments[5]) {
        let reporter = Reporter(report: Report(arguments[6]), prefix: arguments[4])
        let style = ObserverStyle(rawValue: arguments.count > 7 ? arguments[7] : "callback") ?? .callback
        try await observe(prefix: arguments[4], count: count, at: arguments[2], style, reporter)
    } else if arguments.count >= 4, arguments[1] == "poster" {
        let isPrepared = arguments.count > 4 && arguments[4] == "name"
        var poster = Poster(center: NotifyCenter(bus: .address(arguments[2])), isPrepared: isPrepared)
        try poster.obey()
    } else {
        fail("usage: \(arguments[0]) observer ADDRESS INTERFACE PREFIX COUNT REPORT [STYLE] | poster ADDRESS INTERFACE")
    }
} catch {
    fail("NotifyBus: \(error)")
}
