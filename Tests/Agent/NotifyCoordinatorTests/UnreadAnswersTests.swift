// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import NotifyCoordinator

@Suite struct UnreadAnswersTests {
    @Test func `a connection that has been sent a lot is asked once, and counts as having read what came before`() {
        var answers = UnreadAnswers()
        answers.hasAnswered(":1.1", of: Owner(user: 1000), bytes: UnreadAnswers.askedAt - 1)
        #expect(answers.takeQuestions().isEmpty)
        answers.hasAnswered(":1.1", of: Owner(user: 1000), bytes: 1)
        #expect(answers.takeQuestions() == [":1.1"])
        answers.hasAnswered(":1.1", of: Owner(user: 1000), bytes: 100)
        #expect(answers.takeQuestions().isEmpty)
        answers.isKept(0, for: ":1.1")
        #expect(answers.bytes(of: ":1.1") == 100 && answers.bytes(of: Owner(user: 1000)) == 100)
        answers.hasAnswered(":1.1", of: Owner(user: 1000), bytes: UnreadAnswers.askedAt)
        #expect(answers.takeQuestions() == [":1.1"])
        answers.isKept(0, for: ":1.1")
        #expect(answers.count == 0 && answers.bytes(of: Owner(user: 1000)) == 0)
    }

    @Test func `nothing is computed for a connection that does not read, and in the end it is not answered at all`() {
        var answers = UnreadAnswers()
        answers.hasAnswered(":1.1", of: Owner(user: 1000), bytes: UnreadAnswers.limit - 1)
        #expect(answers.refusal(":1.1", of: Owner(user: 1000)) == nil)
        answers.hasAnswered(":1.1", of: Owner(user: 1000), bytes: 1)
        #expect(answers.refusal(":1.1", of: Owner(user: 1000))?.kind == .limitExceeded)
        #expect(
            answers.refusal(":1.2", of: Owner(user: 1000)) == nil && !answers.isIgnored(":1.1", of: Owner(user: 1000))
        )
        answers.hasAnswered(":1.1", of: Owner(user: 1000), bytes: UnreadAnswers.silentAt)
        #expect(answers.isIgnored(":1.1", of: Owner(user: 1000)) && !answers.isIgnored(":1.2", of: Owner(user: 1000)))
        // The next call asks about answers that came after the question.
        _ = answers.takeQuestions()
        answers.isKept(0, for: ":1.1")
        #expect(answers.refusal(":1.1", of: Owner(user: 1000)) != nil && answers.takeQuestions() == [":1.1"])
        answers.isKept(0, for: ":1.1")
        #expect(
            answers.refusal(":1.1", of: Owner(user: 1000)) == nil && !answers.isIgnored(":1.1", of: Owner(user: 1000))
        )
    }

    @Test func `a user's connections together are limited, and no other user is`() {
        var answers = UnreadAnswers()
        for number in 0..<64 {
            answers.hasAnswered(":1.\(number)", of: Owner(user: 1000), bytes: UnreadAnswers.ownerLimit / 64)
        }
        #expect(answers.refusal(":1.100", of: Owner(user: 1000))?.kind == .limitExceeded)
        #expect(answers.refusal(":1.101", of: Owner(user: 1001)) == nil)
        #expect(Set(answers.takeQuestions()).count == 64)
        for number in 0..<64 { answers.isKept(1_000, for: ":1.\(number)") }
        #expect(
            answers.refusal(":1.100", of: Owner(user: 1000)) == nil && answers.bytes(of: Owner(user: 1000)) == 64_000
        )
    }

    @Test func `a user whose connections together have twice as much unread is not answered any more`() {
        var answers = UnreadAnswers()
        for number in 0..<128 {
            #expect(!answers.isIgnored(":1.200", of: Owner(user: 1000)))
            answers.hasAnswered(":1.\(number)", of: Owner(user: 1000), bytes: UnreadAnswers.ownerLimit / 64)
        }
        #expect(answers.isIgnored(":1.200", of: Owner(user: 1000)))
        #expect(!answers.isIgnored(":1.201", of: Owner(user: 1001)))
    }

    @Test func `what strangers leave unread keeps nobody out, and counts as their users' once they are known`() {
        var answers = UnreadAnswers()
        let stranger = UnreadAnswers.strangers
        for number in 0..<128 {
            answers.hasAnswered(":1.\(number)", of: stranger, bytes: UnreadAnswers.ownerLimit / 32)
        }
        #expect(answers.refusal(":1.200", of: stranger) == nil && !answers.isIgnored(":1.200", of: stranger))
        #expect(answers.refusal(":1.1", of: stranger)?.kind == .limitExceeded)
        #expect(Set(answers.takeQuestions()).count == 128)
        for number in 0..<64 { answers.hasAnswered(":1.\(number)", of: Owner(user: 1000), bytes: 1) }
        // Those that are still unknown keep what is theirs.
        #expect(answers.bytes(of: stranger) == 64 * UnreadAnswers.ownerLimit / 32)
        #expect(answers.refusal(":1.200", of: Owner(user: 1000))?.kind == .limitExceeded)
        #expect(answers.refusal(":1.200", of: Owner(user: 1001)) == nil)
        for number in 0..<128 { answers.isKept(0, for: ":1.\(number)") }
        #expect(answers.refusal(":1.200", of: Owner(user: 1000)) == nil)
        for number in 0..<64 { answers.hasAnswered(":1.\(number)", of: Owner(user: 1000), bytes: 64 << 10) }
        for name in answers.takeQuestions() { answers.isKept(0, for: name) }
        #expect(answers.count == 0 && answers.bytes(of: stranger) == 0 && answers.bytes(of: Owner(user: 1000)) == 0)
    }

    @Test func `connections that have gone leave nothing behind`() {
        var answers = UnreadAnswers()
        for number in 0..<100_000 {
            answers.hasAnswered(":1.\(number)", of: Owner(user: 1000), bytes: 100)
            for name in answers.takeQuestions() { answers.isKept(name == ":1.7" ? 1_000_000 : 0, for: name) }
        }
        #expect(answers.count < 1_000 && answers.bytes(of: Owner(user: 1000)) < 100_000)
        #expect(answers.bytes(of: ":1.7") == 100)
    }

    @Test func `in every history the most that may be unread counts, and no more, and no question is asked twice`() {
        var random = SeededGenerator(seed: 11)
        for _ in 0..<40 {
            var answers = UnreadAnswers()
            // What the bus keeps, and what it has when it is asked.
            var kept: [String: Int] = [:]
            var asked: [String: Int] = [:]
            for _ in 0..<2_000 {
                let user = UInt32.random(in: 1000..<1006, using: &random)
                let name = ":1.\(user).\(Int.random(in: 0..<40, using: &random))"
                switch Int.random(in: 0..<6, using: &random) {
                case 0...2:
                    let bytes = Int.random(in: 1...100_000, using: &random)
                    answers.hasAnswered(name, of: Owner(user: user), bytes: bytes)
                    kept[name, default: 0] += bytes
                case 3:
                    kept[name] = Int.random(in: 0...(kept[name] ?? 0), using: &random)
                default:
                    guard let name = asked.keys.sorted().randomElement(using: &random) else { continue }
                    answers.isKept(asked.removeValue(forKey: name) ?? 0, for: name)
                }
                for name in answers.takeQuestions() {
                    #expect(asked[name] == nil)
                    asked[name] = kept[name] ?? 0
                }
                #expect(answers.bytes(of: name) >= kept[name] ?? 0)
            }
            for (name, bytes) in asked { answers.isKept(bytes, for: name) }
            for user in 1000..<1006 as Range<UInt32> {
                #expect(
                    answers.bytes(of: Owner(user: user))
                        == (0..<40).reduce(0) { $0 + answers.bytes(of: ":1.\(user).\($1)") }
                )
            }
        }
    }
}
