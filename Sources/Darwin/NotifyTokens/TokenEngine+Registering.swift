// SPDX-License-Identifier: Apache-2.0

import CForkGuard
import Glibc
package import NotifyCore
import Synchronization

extension TokenEngine {
    /// How a token is to be notified, before it exists.
    package enum Wish: Sendable {
        /// Not at all: it is polled with `notify_check` or `notify_peek`.
        case none
        /// Not at all: it is for a state or a file.
        case plain
        case signal(Int32)
        /// Through a new pipe.
        case newPipe
        /// Through the existing pipe from which the program reads with this descriptor.
        case pipe(Int32)
        case queue(@Sendable (Registration) -> Void)
        case callback(CallbackTarget.Function)
    }

    /// Registers a name. When this returns, every later post is heard.
    ///
    /// - Parameters:
    ///   - token: receives the token before anything can be delivered for it; -1 if this throws.
    ///   - descriptor: receives the reading end of a new pipe.
    ///   - prepare: called once the token has been stored, and before anything is delivered. If it returns false, the
    ///     registration fails.
    package func register(
        _ text: UnsafePointer<CChar>?,
        _ wish: Wish,
        token: UnsafeMutablePointer<Int32>?,
        descriptor: UnsafeMutablePointer<Int32>? = nil,
        prepare: (() -> Bool)? = nil
    ) throws(NotifyStatus) {
        guard let token else { throw .nullInput }
        token.pointee = -1
        let (registration, isFirst, center) = try withState { state throws(NotifyStatus) in
            let name = try state.recentNames.find(text)
            if !name.staysInProcess { try TokenEngine.requireBus(state) }
            let entry = try enter(name, wish, &state)
            token.pointee = entry.0.token
            if prepare != nil { entry.0.suspend() }
            return entry
        }
        let record = registration.name
        do throws(NotifyStatus) {
            let isPrepared = prepare?() ?? true
            if isFirst { open(record, on: center) }
            switch waitUntilOpen(record) {
            case .waiting(let error), .failed(let error): throw NotifyStatus(error)
            case .opening, .live, .gone: break
            }
            if !isPrepared { throw .failed }
            if prepare != nil, registration.resume() { registration.deliver() }
            if case .descriptor(let pipe) = registration.delivery { descriptor?.pointee = pipe.readEnd }
        } catch {
            token.pointee = -1
            try? cancel(registration.token)
            throw error
        }
    }

    /// Registers a name for Core Foundation's center: if there is no bus, it is heard as soon as there is one.
    ///
    /// When this returns, every later post is heard, or it is known why not yet.
    ///
    /// - Parameters:
    ///   - schedule: called for each notification, on any thread; it is to call `run` soon.
    ///   - failed: called on the center's thread if it had to wait for the bus, and is then refused.
    /// - Returns: also why it is not heard yet; nil if it is.
    package func observe(
        _ name: NotifyName,
        _ schedule: @escaping @Sendable (Registration) -> Void,
        failed: @escaping @Sendable (NotifyBusError) -> Void
    ) throws(NotifyBusError) -> (token: Int32, delay: NotifyBusError?) {
        while true {
            let (registration, isFirst, center): (Registration, Bool, NotifyCenter)
            do throws(NotifyStatus) {
                (registration, isFirst, center) = try withState { state throws(NotifyStatus) in
                    try enter(name, .queue(schedule), &state)
                }
            } catch {
                throw NotifyBusError(.limitExceeded, "The numbers for registrations are exhausted.")
            }
            if isFirst { open(registration.name, on: center, failed: failed) }
            switch waitUntilOpen(registration.name) {
            case .opening, .live, .gone: return (registration.token, nil)
            case .waiting(let error): return (registration.token, error)
            case .failed(let error):
                try? cancel(registration.token)
                // Otherwise it was tried by a caller that did not want to wait for a bus.
                if isFirst { throw error }
            }
        }
    }

    /// Creates the token, and everything that it needs except the bus.
    private func enter(
        _ name: NotifyName,
        _ wish: Wish,
        _ state: inout State
    ) throws(NotifyStatus) -> (Registration, isFirst: Bool, NotifyCenter) {
        let delivery = try TokenEngine.delivery(for: wish, &state)
        var isFirst = false
        let record: SharedObservation
        if let known = state.records[name] {
            record = known
            record.idleSince = nil
        } else {
            record = SharedObservation(name, posts: table.makeCounter())
            state.records[name] = record
            isFirst = true
        }
        // As on Darwin. A name that stays in the process is counted there for every kind of token.
        var isPeekable = name.staysInProcess
        if case .none = wish { isPeekable = true }
        guard let number = table.makeToken(counting: record.posts, isPeekable: isPeekable) else {
            if case .descriptor(let pipe) = delivery { TokenEngine.release(pipe, &state)?.close() }
            if isFirst { state.records[name] = nil }
            throw .failed
        }
        let registration = Registration(token: number, name: record, delivery: delivery)
        record.add(registration)
        state.registrations[number] = registration
        return (registration, isFirst, state.center)
    }

    private static func delivery(
        for wish: Wish,
        _ state: inout State
    ) throws(NotifyStatus) -> Registration.Delivery {
        switch wish {
        case .none, .plain: return .none
        case .signal(let number): return .signal(number)
        case .queue(let schedule): return .queue(schedule)
        case .callback(let function):
            // Known before the center is asked: its answer is of a type that the child may be unable to create.
            if fork_is_cut_off() { throw .disabled }
            return .callback(try CallbackTarget(function, on: state.center))
        case .newPipe:
            let pipe = try TokenPipe(deferredWork: state.deferredWork)
            state.pipes[pipe.readEnd] = pipe
            return .descriptor(pipe)
        case .pipe(let number):
            guard let pipe = state.pipes[number], pipe.isReadable else { throw .invalidFile }
            pipe.users.add(1, ordering: .relaxed)
            return .descriptor(pipe)
        }
    }

    /// Registers a name with the center. The first registration of a name also does it for those that come in the
    /// meantime.
    ///
    /// - Parameter failed: if not nil, it is registered as soon as there is a bus, and this is called if that fails.
    private func open(
        _ record: SharedObservation,
        on center: NotifyCenter,
        failed: (@Sendable (NotifyBusError) -> Void)? = nil
    ) {
        var outcome = SharedObservation.Phase.live
        var observation: NotifyCenter.Observation?
        if record.needsBus || !state.withLock({ $0.isChild }) {
            hearOwnPosts(of: center)
            do throws(NotifyBusError) {
                // A strong reference, so that engine and record live as long as the observation: an object with a weak
                // reference takes 30 ns longer to retain ever after.
                let callback: @Sendable (NotifyName) -> Void = { _ in self.deliver(record) }
                // A program's slow callback delays other callbacks, and not what only writes, signals or counts: unless that
                // takes longer than the bus takes for a post, so that the thread that reads would fall behind.
                let isShort: @Sendable () -> Bool = {
                    self.state.withLock { _ in record.count <= TokenEngine.shortCount }
                }
                if let failed {
                    let (pending, delay) = try center.addPromptObserverWaitingForBus(
                        for: record.name,
                        ignoringOwnPosts: true,
                        isShort: isShort,
                        using: callback,
                        whenLive: { self.settle(record, $0, failed) }
                    )
                    observation = pending
                    if let delay { outcome = .waiting(delay) }
                } else {
                    observation = try center.addPromptObserver(
                        for: record.name,
                        ignoringOwnPosts: true,
                        timeout: .seconds(25),
                        isShort: isShort,
                        using: callback
                    )
                }
            } catch {
                outcome = .failed(error)
            }
        }
        let retired = state.withLock { state in
            record.observation = observation
            TokenEngine.set(record, record.settled ?? outcome, &state)
            // Its tokens may have been cancelled in the meantime: a handler can do that as soon as the name is heard.
            return record.isEmpty ? retire(record, &state) : []
        }
        state.wakeAll()
        end(retired)
    }

    /// A name that had to wait for the bus is live, or the bus has refused it.
    private func settle(
        _ record: SharedObservation,
        _ result: Result<Void, NotifyBusError>,
        _ failed: @Sendable (NotifyBusError) -> Void
    ) {
        state.withLock { state in
            let phase: SharedObservation.Phase =
                switch result {
                case .success: .live
                case .failure(let error): .failed(error)
                }
            switch record.phase {
            case .gone: break
            case .opening: record.settled = phase
            case .waiting, .live, .failed: TokenEngine.set(record, phase, &state)
            }
        }
        state.wakeAll()
        if case .failure(let error) = result { failed(error) }
    }

    /// The next registration of a name that has failed starts over.
    private static func set(_ record: SharedObservation, _ phase: SharedObservation.Phase, _ state: inout State) {
        record.phase = phase
        if case .failed = phase, state.records[record.name] === record { state.records[record.name] = nil }
    }

    private func waitUntilOpen(_ record: SharedObservation) -> SharedObservation.Phase {
        let phase: SharedObservation.Phase? = state.wait(until: nil) { _ in
            if case .opening = record.phase { nil } else { record.phase }
        }
        // Never nil: this waits without a limit, and the thread that is registering the name gets an answer within one.
        return phase ?? .gone
    }

    // MARK: - Tokens

    func find(_ token: Int32) throws(NotifyStatus) -> Registration {
        try withState { state throws(NotifyStatus) in
            guard let registration = state.registrations[token] else { throw .invalidToken }
            return registration
        }
    }

    /// Ends a registration. No delivery starts after this has returned, and no callback is running in another thread.
    package func cancel(_ token: Int32) throws(NotifyStatus) {
        let (registration, pipe, hadFile, deferredWork, retired) = try withState { state throws(NotifyStatus) in
            guard let registration = state.registrations.removeValue(forKey: token) else { throw .invalidToken }
            registration.cancel()
            table.remove(token)
            let record = registration.name
            record.remove(registration)
            var pipe: TokenPipe?
            if case .descriptor(let used) = registration.delivery { pipe = TokenEngine.release(used, &state) }
            let hadFile = state.files.remove(token) != nil
            return (registration, pipe, hadFile, state.deferredWork, record.isEmpty ? retire(record, &state) : [])
        }
        if let pipe {
            pipe.close()
        } else if case .descriptor(let pipe) = registration.delivery {
            pipe.forget(token)
        }
        if hadFile { deferredWork.stopMonitoring(token) }
        end(retired)
        if case .callback(let target) = registration.delivery { target.end() }
    }

    /// Ends the observations of names that have no more tokens.
    private func end(_ retired: [SharedObservation]) {
        for record in retired {
            if record.hasState { forgetState(of: record) }
            close(record)
        }
    }

    /// - Returns: the pipe, if this was its last user.
    private static func release(_ pipe: TokenPipe, _ state: inout State) -> TokenPipe? {
        guard pipe.users.subtract(1, ordering: .relaxed).newValue == 0 else { return nil }
        if state.pipes[pipe.readEnd] === pipe { state.pipes[pipe.readEnd] = nil }
        return pipe
    }

    /// Suspends delivery for a token, until `resume` has been called as often.
    package func suspend(_ token: Int32) throws(NotifyStatus) {
        try find(token).suspend()
    }

    /// Resumes delivery; notifies once immediately if the name was posted in the meantime.
    package func resume(_ token: Int32) throws(NotifyStatus) {
        let registration = try find(token)
        if registration.resume() { registration.deliver() }
    }

    /// Whether the name of a token was posted since the last check. Takes no lock.
    @inline(__always)
    package func check(_ token: Int32) -> Bool? { table.check(token) }

    /// How often the name of a token was posted, plus an offset. Takes no lock.
    ///
    /// - Throws: `invalidRequest` for a token that `notify_peek` refuses.
    package func posts(_ token: Int32) throws(NotifyStatus) -> UInt32 { try table.posts(token).get() }

    /// Whether a number is currently a token. Takes no lock.
    package func isValid(_ token: Int32) -> Bool { table.contains(token) }
}

extension TokenEngine {
    /// Registers a name with a signal to this process. As on Darwin, any number will do; if there is no such signal,
    /// kill(2) does nothing.
    package func register(
        _ name: UnsafePointer<CChar>?,
        signal: Int32,
        token: UnsafeMutablePointer<Int32>?
    ) throws(NotifyStatus) {
        try register(name, .signal(signal), token: token)
    }

    /// Registers a name with a descriptor, with the flags of `notify_register_file_descriptor`.
    package func register(
        _ name: UnsafePointer<CChar>?,
        descriptor: UnsafeMutablePointer<Int32>?,
        flags: Int32,
        token: UnsafeMutablePointer<Int32>?
    ) throws(NotifyStatus) {
        token?.pointee = -1
        guard name != nil else { throw .invalidName }
        guard let descriptor else { throw .invalidFile }
        let wish = flags & 1 == 0 ? Wish.newPipe : .pipe(descriptor.pointee)
        try register(name, wish, token: token, descriptor: descriptor)
    }
}
