// SPDX-License-Identifier: Apache-2.0

/// The two message bus daemons that desktops run.
public enum BusKind: String, CaseIterable, Codable, Sendable, CustomStringConvertible {
    /// The reference implementation.
    case daemon = "dbus-daemon"
    /// What Fedora, Arch and others run instead.
    case broker = "dbus-broker"

    /// The program's name.
    public var description: String { rawValue }

    /// Nil if this kind can be started here, otherwise a sentence that says why not.
    ///
    /// Tests without a bus are skipped with this sentence. Problems with the build don't count: then ``PrivateBus``
    /// throws.
    public var unavailable: String? {
        switch self {
        case .daemon: isInstalled(rawValue) ? nil : "dbus-daemon is not installed."
        case .broker: brokerUnavailable
        }
    }

    /// In an exit test: the kind that was handed over to it by name.
    public static func handedOver(to exitTest: String) throws -> BusKind {
        let name = try TestSupport.handedOver(to: exitTest)
        guard let kind = BusKind(rawValue: name) else { throw TestSupportError("There is no daemon \(name).") }
        return kind
    }
}

/// The kinds that can be started here: for tests of what depends on the bus, such as every promise.
public let busKinds = BusKind.allCases.filter { $0.unavailable == nil }

/// One of them, for tests of what doesn't: which one depends on where the test is. All of them in a long run.
public func anyBusKind(line: Int = #line) -> [BusKind] {
    isLongRun || busKinds.isEmpty ? busKinds : [busKinds[line % busKinds.count]]
}

private let brokerUnavailable: String? = {
    guard let launcher = try? productPath("bus-launcher"), let check = try? run(launcher, ["--check"]) else {
        return nil
    }
    guard check.status != 0 else { return nil }
    return String(check.errorOutput.split(separator: "\n").last ?? "dbus-broker can't be started here.")
}()
