// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames
import TestSupport
import Testing

@testable import NotifyAgent

/// The life of a source: who has it begin, begin again, and end.
@Suite struct SourceTests {
    private final class LoggingSource: Source {
        private let log: Recorder<String>
        private var failures: Int

        init(_ log: Recorder<String>, failures: Int = 0) { (self.log, self.failures) = (log, failures) }

        func want(_ names: Set<NotifyName>) { log.append("wants \(names.count)") }
        func observerHasCome(_ process: Newcomer.ProcessFacts) { log.append("\(process.id.pid) has come") }
        func observerHasGone(_ process: ProcessID) { log.append("\(process.pid) has gone") }

        func begin(on driver: SourceDriver) throws(SourceFault) {
            log.append("begins")
            failures -= 1
            if failures >= 0 { throw SourceFault("it is broken") }
            driver.isLive()
        }

        func end() { log.append("ends") }
    }

    @Test func `a source that fails is begun again, and once it was ended nothing it reports counts`() throws {
        let (thread, log) = (try EventThread(name: "source"), Recorder<String>())
        thread.perform { loop in
            weak var driver: SourceDriver?
            let made = SourceDriver(LoggingSource(log, failures: 1), on: loop) { report in
                guard case .condition(let condition) = report else { return }
                log.append("\(condition)")
                guard condition == .live else { return }
                loop.soon {
                    driver?.end()
                    driver?.isOff("too late")
                    log.append("over")
                }
            }
            driver = made
            loop.tenant = made
            made.begin()
        }
        try #require(log.wait(forCount: 7))
        #expect(log.elements == ["begins", "off(\"it is broken\")", "ends", "begins", "live", "ends", "over"])
        thread.stop(waits: true)
    }

    @Test func `a source works as long as it has a reader, and learns what was the case before`() throws {
        let (thread, log) = (try EventThread(name: "source"), Recorder<String>())
        thread.perform { loop in
            let sources = SourceSet(
                ["a": SourceMaker(reportsFacts: true) { LoggingSource(log) }],
                deciding: ["a"],
                on: loop,
                board: FactBoard(on: loop) {},
                reset: { name, condition in log.append(condition == nil ? "\(name) is unknown" : "\(name) is off") },
                deliver: { _, _ in }
            )
            sources.present(Newcomer.ProcessFacts(id: ProcessID(pid: 7, startTime: 1, user: 0)))
            sources.want("a", by: .names, ["com.example.a", "com.example.b"])
            sources.decide()
            sources.want("a", by: .names, ["com.example.a"])
            sources.release("a", by: .names)
            sources.forget(ProcessID(pid: 7, startTime: 1, user: 0))
            log.append("rest")
            sources.rest()
            sources.want("nobody", by: .agent)
            log.append("over")
        }
        try #require(log.wait(forCount: 10))
        #expect(
            log.elements == [
                "a is unknown", "wants 2", "7 has come", "begins", "wants 1", "7 has gone", "rest", "ends", "a is off",
                "over",
            ]
        )
        thread.stop(waits: true)
    }
}
