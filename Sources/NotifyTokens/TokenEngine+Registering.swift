// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

extension TokenEngine {
    /// How a token is to be notified, before it exists.
    package enum Wish: Sendable {
        case none
        case signal(Int32)
        /// Through a new pipe.
        case newPipe
        /// Through the existing pipe from which the program reads with this descriptor.
        case pipe(Int32)
        case queue(@Sendable (Registration) -> Void)
    }

    /// Registers a name. When this returns, every later post is heard.
    ///
    /// - Parameters:
    ///   - token: receives the token before anything can be delivered for it; -1 if this throws.
    ///   - descriptor: receives the reading end of a new pipe.
    ///   - prepare: called once the token has been stored, and before anything is delivered. If it returns false, the
    ///     registration fails.
    package func register(
        _ name: UnsafePointer<CChar>?,
        _ wish: Wish,
        token: UnsafeMutablePointer<Int32>?,
        descriptor: UnsafeMutablePointer<Int32>? = nil,
        prepare: (() -> Bool)? = nil
    ) throws(NotifyStatus) {
        guard let token else { throw .nullInput }
        token.pointee = -1
        let (registration, opensBus, center) = try withState { state throws(NotifyStatus) in
            let entry = try enter(name, wish, &state, token: token)
            if prepare != nil { entry.0.suspend() }
            return entry
        }
        let record = registration.name
        do throws(NotifyStatus) {
            let isPrepared = prepare?() ?? true
            if opensBus { open(record, on: center) }
            try waitUntilOpen(record)
            if !isPrepared { throw .failed }
            if prepare != nil, registration.resume() { registration.deliver() }
            if case .descriptor(let pipe) = registration.delivery { descriptor?.pointee = pipe.readEnd }
        } catch {
            token.pointee = -1
            try? cancel(registration.token)
            throw error
        }
    }

    /// Creates the token, and everything that it needs except the bus.
    private func enter(
        _ text: UnsafePointer<CChar>?,
        _ wish: Wish,
        _ state: inout State,
        token: UnsafeMutablePointer<Int32>
    ) throws(NotifyStatus) -> (Registration, opensBus: Bool, NotifyCenter) {
        let name = try state.recentNames.find(text)
        if !name.staysInProcess { try TokenEngine.requireBus(state) }
        let delivery = try TokenEngine.delivery(for: wish, &state)
        var opensBus = false
        let record: NameRecord
        if let known = state.records[name] {
            record = known
            record.idleSince = nil
        } else {
            record = NameRecord(name, posts: table.makeCounter())
            state.records[name] = record
            opensBus = true
        }
        guard let number = table.makeToken(counting: record.posts) else {
            if case .descriptor(let pipe) = delivery { TokenEngine.release(pipe, &state)?.close() }
            if opensBus { state.records[name] = nil }
            throw .failed
        }
        let registration = Registration(token: number, name: record, delivery: delivery)
        record.add(registration)
        state.registrations[number] = registration
        token.pointee = number
        return (registration, opensBus, state.center)
    }

    private static func delivery(
        for wish: Wish,
        _ state: inout State
    ) throws(NotifyStatus) -> Registration.Delivery {
        switch wish {
        case .none: return .none
        case .signal(let number): return .signal(number)
        case .queue(let schedule): return .queue(schedule)
        case .newPipe:
            let pipe = try TokenPipe(keeper: state.keeper)
            state.pipes[pipe.readEnd] = (pipe, 1)
            return .descriptor(pipe)
        case .pipe(let number):
            guard let (pipe, users) = state.pipes[number] else { throw .invalidFile }
            state.pipes[number] = (pipe, users + 1)
            return .descriptor(pipe)
        }
    }

    /// Registers a name with the center. The first registration of a name also does it for those that come in the
    /// meantime.
    private func open(_ record: NameRecord, on center: NotifyCenter) {
        var outcome = NameRecord.Phase.live
        var observation: NotifyCenter.Observation?
        if record.needsBus || !state.withLock({ $0.isChild }) {
            hearOwnPosts(of: center)
            do throws(NotifyBusError) {
                // A strong reference, so that engine and record live as long as the observation: an object with a weak
                // reference takes 30 ns longer to retain ever after.
                observation = try center.addObserver(forName: record.name, ignoringOwnPosts: true) { _ in
                    self.deliver(record)
                }
            } catch {
                outcome = .failed(NotifyStatus(error))
            }
        }
        state.withLock { state in
            record.phase = outcome
            record.observation = observation
            if case .failed = outcome, state.records[record.name] === record { state.records[record.name] = nil }
        }
        state.wakeAll()
    }

    private func waitUntilOpen(_ record: NameRecord) throws(NotifyStatus) {
        let failure: NotifyStatus?? = state.wait(until: nil) { _ in
            switch record.phase {
            case .opening: nil
            case .live, .gone: .some(nil)
            case .failed(let status): .some(status)
            }
        }
        if case .some(.some(let status)) = failure { throw status }
    }

    // MARK: - Tokens

    func find(_ token: Int32) throws(NotifyStatus) -> Registration {
        try withState { state throws(NotifyStatus) in
            guard let registration = state.registrations[token] else { throw .invalidToken }
            return registration
        }
    }

    /// Ends a registration. No delivery starts after this has returned.
    package func cancel(_ token: Int32) throws(NotifyStatus) {
        let (registration, pipe, file, keeper, retired) = try withState { state throws(NotifyStatus) in
            guard let registration = state.registrations.removeValue(forKey: token) else { throw .invalidToken }
            registration.cancel()
            table.remove(token)
            let record = registration.name
            record.remove(registration)
            var pipe: TokenPipe?
            if case .descriptor(let used) = registration.delivery { pipe = TokenEngine.release(used, &state) }
            let file = state.files.removeValue(forKey: token)
            return (registration, pipe, file, state.keeper, record.isEmpty ? retire(record, &state) : [])
        }
        if let pipe {
            pipe.close()
        } else if case .descriptor(let pipe) = registration.delivery {
            pipe.forget(token)
        }
        if let file { keeper.stopMonitoring(file) }
        for record in retired {
            if record.hasState { forgetState(of: record) }
            close(record)
        }
    }

    /// - Returns: the pipe, if this was its last user.
    private static func release(_ pipe: TokenPipe, _ state: inout State) -> TokenPipe? {
        guard let (known, users) = state.pipes[pipe.readEnd], known === pipe else { return nil }
        state.pipes[pipe.readEnd] = users > 1 ? (pipe, users - 1) : nil
        return users > 1 ? nil : pipe
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
    package func posts(_ token: Int32) -> UInt32? { table.posts(token) }

    /// Whether a number is currently a token. Takes no lock.
    package func isValid(_ token: Int32) -> Bool { table.contains(token) }
}

extension TokenEngine {
    /// Registers a name with a signal to this process.
    package func register(
        _ name: UnsafePointer<CChar>?,
        signal: Int32,
        token: UnsafeMutablePointer<Int32>?
    ) throws(NotifyStatus) {
        var set = sigset_t()
        guard signal > 0, sigaddset(&set, signal) == 0 else {
            token?.pointee = -1
            throw .invalidSignal
        }
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
