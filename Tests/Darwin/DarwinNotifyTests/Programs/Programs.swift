// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc

#if WITH_FOUNDATION
    import Foundation
#endif

/// Small programs as people write them for Apple's systems, in one executable: the first argument selects one.
///
/// They are compiled twice, in Swift 6 without Foundation, and in Swift 5 with Foundation imported beside DarwinNotify.
@main
enum Programs {
    @MainActor static let all: [String: @MainActor () -> Void] = [
        "observer-with-context": observerWithContext,
        "duplicate-registration": duplicateRegistration,
        "removal-by-observer": removalByObserver,
        "observation-token": observationToken,
        "stream": streamWrapper,
        "publisher": publisher,
        "file-and-ping": fileAndPing,
        "typed-wrapper": typedWrapper,
        "main-actor-model": mainActorModel,
        "posting-with-user-info": postingWithUserInfo,
        "removal-in-deinit": removalInDeinit,
        "function-as-callback": functionAsCallback,
        "fan-out": fanOut,
    ].merging(Rules.all) { program, _ in program }

    @MainActor static func main() {
        guard let name = CommandLine.arguments.dropFirst().first, let program = all[name] else {
            say("There is no such program.")
            exit(64)
        }
        program()
        #if WITH_FOUNDATION
            RunLoop.main.run()
        #else
            dispatchMain()
        #endif
    }
}
