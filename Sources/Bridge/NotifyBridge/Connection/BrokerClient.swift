// SPDX-License-Identifier: Apache-2.0

import CommandSupport
// `environ` is a global variable of C; nothing here changes it.
@preconcurrency import Glibc
import NotifyCore

/// One connection to a broker, held by a process of its own. Only one thread at a time uses it; its closures run on that
/// thread, inside ``proceed(_:)``.
final class BrokerClient {
    /// The broker has answered: 0, or the reason why it refuses this client. See section 3.2.2.2 of MQTT 5.
    var onConnect: (Int32, BrokerAbilities) -> Void = { _, _ in }
    /// The connection has ended.
    var onEnd: (ConnectionEnd) -> Void = { _ in }
    /// The broker has answered a subscription with a reason for each of its filters.
    var onSubscribe: (Int, [Int32]) -> Void = { _, _ in }
    /// The broker has answered ``ask(_:)``.
    var onAnswer: () -> Void = {}
    var onMessage: (_ topic: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, _ isRetained: Bool) -> Void =
        { _, _, _ in }

    /// The most parcels that are read before others get their turn.
    private static let portion = 64
    /// How long the process may take to say goodbye to the broker, in milliseconds.
    private static let farewell: Int32 = 500

    private let socket: ParcelSocket
    /// 0 once it is gone.
    private var process: pid_t
    /// A parcel for which there was no room.
    private var pending: [UInt8]?
    private var hasEnded = false
    private var saysGoodbye = false

    /// Starts the process, which connects.
    init(_ login: BrokerLogin) throws(ConfigurationError) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw BrokerClient.cannotStart(errno) }
        socket = ParcelSocket(ends[0])
        let result = BrokerClient.start(ends[1])
        close(ends[1])
        process = try result.get()
        send(login.parcel)
    }

    deinit {
        if saysGoodbye {
            var source = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
            poll(&source, 1, Self.farewell)
        }
        guard process != 0 else { return }
        kill(process, SIGKILL)
        _ = reap()
    }

    private static func cannotStart(_ code: Int32) -> ConfigurationError {
        ConfigurationError("The process for the connection can't be started: \(describe(errno: code))")
    }

    private static func start(_ input: Int32) -> Result<pid_t, ConfigurationError> {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        // The bridge says what there is to say; the C library would add which assertion has failed.
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        // A signal to all processes of a service, as from systemd, is meant for the bridge, which still has to say
        // goodbye.
        var blocked = sigset_t()
        sigemptyset(&blocked)
        for signal in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&blocked, signal) }
        posix_spawnattr_setsigmask(&attributes, &blocked)
        let words = ["notify-bridge", ConnectionProcess.argument]
        let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        let backtrace = strdup("SWIFT_BACKTRACE=enable=no")
        defer { free(backtrace) }
        var process: pid_t = 0
        // Also while another version is being installed.
        let status = posix_spawn(
            &process,
            "/proc/self/exe",
            &actions,
            &attributes,
            arguments,
            environment(with: backtrace)
        )
        return status == 0 ? .success(process) : .failure(cannotStart(status))
    }

    /// Our environment, but that a crash, which is expected, is not examined.
    private static func environment(
        with entry: UnsafeMutablePointer<CChar>?
    ) -> [UnsafeMutablePointer<CChar>?] {
        var result = [entry]
        var next = environ
        while let other = next.pointee {
            if strncmp(other, "SWIFT_BACKTRACE=", 16) != 0 { result.append(other) }
            next += 1
        }
        return result + [nil]
    }

    /// - Returns: by which signal the process has ended; 0 if by none.
    private func reap() -> Int32 {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        process = 0
        return status & 0x7f
    }

    /// To be polled for ``events``.
    var descriptor: Int32 { socket.descriptor }
    var events: Int16 { Int16(POLLIN | (pending == nil ? 0 : POLLOUT)) }

    /// Whether more may be sent.
    var isReady: Bool { pending == nil && !hasEnded }

    /// Reads what has come, and writes what waits.
    func proceed() {
        if let bytes = pending {
            pending = nil
            write(bytes)
        }
        for _ in 0..<Self.portion where !hasEnded {
            switch socket.receive(waits: false) {
            case .parcel(let parcel): take(parcel)
            case .nothing: return
            case .gone: noteDeath()
            }
        }
    }

    private func take(_ parcel: Parcel) {
        switch parcel.kind {
        case .connected: onConnect(Int32(clamping: parcel.number(0)), BrokerAbilities(parcel))
        case .subscribed:
            onSubscribe(parcel.number(0), parcel.fields.indices.dropFirst().map { Int32(clamping: parcel.number($0)) })
        case .answered: onAnswer()
        case .message:
            parcel[0].withUnsafeBytes { topic in
                parcel[1].withUnsafeBytes { onMessage(topic, $0, parcel.number(2) != 0) }
            }
        case .ended:
            hasEnded = true
            onEnd(ConnectionEnd(parcel))
        case .connect, .subscribe, .publish, .ask, .disconnect: break
        }
    }

    /// The process has ended without a word.
    private func noteDeath() {
        hasEnded = true
        let signal = reap()
        let name = strsignal(signal).map { String(cString: $0) } ?? "signal \(signal)"
        let text = signal == 0 ? "its process has ended" : "libmosquitto can't handle what the broker sent (\(name))"
        onEnd(.closed(text))
    }

    private func send(_ parcel: Parcel) { write(parcel.bytes) }

    private func write(_ bytes: [UInt8]) {
        // The caller looks at `isReady` first, so that one parcel waits at most.
        if socket.send(bytes, waits: false) == .full { pending = bytes }
    }

    func publish(_ topic: MQTTTopic, _ payload: String, retained: Bool) {
        send(Parcel(.publish, [topic.bytes, Parcel.field(payload), Parcel.field(retained ? 1 : 0)]))
    }

    /// Subscribes to filters, excluding what this client itself publishes.
    ///
    /// - Parameter id: what ``onSubscribe`` gets.
    func subscribe(_ filters: some Sequence<MQTTTopic>, as id: Int, retained: Bool) {
        send(Parcel(.subscribe, [Parcel.field(id), Parcel.field(retained ? 1 : 0)] + filters.map(\.bytes)))
    }

    /// Asks the broker to remove a subscription that doesn't exist. It answers once it has handled everything before
    /// that.
    func ask(_ filter: MQTTTopic) { send(Parcel(.ask, [filter.bytes])) }

    func disconnect() {
        send(Parcel(.disconnect))
        saysGoodbye = pending == nil
    }
}
