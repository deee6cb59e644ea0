// SPDX-License-Identifier: Apache-2.0

// Says 'import Foundation' and nothing else, as on Apple's systems.
import Foundation

/// A wrapper with closures and tokens that end an observation when they go.
final class Broadcast {
    static let shared = Broadcast()

    final class Token {
        fileprivate let name: CFNotificationName
        fileprivate let body: () -> Void

        fileprivate init(_ name: CFNotificationName, _ body: @escaping () -> Void) {
            self.name = name
            self.body = body
        }

        deinit {
            CFNotificationCenterRemoveObserver(
                CFNotificationCenterGetDarwinNotifyCenter(),
                Unmanaged.passUnretained(self).toOpaque(),
                name,
                nil
            )
        }
    }

    func observe(_ name: String, _ body: @escaping () -> Void) -> Token {
        let token = Token(CFNotificationName(name as CFString), body)
        let callback: CFNotificationCallback = { _, observer, _, _, _ in
            guard let observer else { return }
            Unmanaged<Token>.fromOpaque(observer).takeUnretainedValue().body()
        }
        CFNotificationCenterAddObserver(
            CFNotificationCenterGetDarwinNotifyCenter(),
            Unmanaged.passUnretained(token).toOpaque(),
            callback,
            name as CFString,
            nil,
            .deliverImmediately
        )
        return token
    }

    func post(_ name: String) {
        let cfName = CFNotificationName(rawValue: name as CFString)
        CFNotificationCenterPostNotification(CFNotificationCenterGetDarwinNotifyCenter(), cfName, nil, nil, true)
    }
}

func onlyFoundation() {
    var isFirst = true
    let date = Date(timeIntervalSince1970: 0)
    let token = Broadcast.shared.observe("com.example.only-foundation") {
        print("heard in", ISO8601DateFormatter().string(from: date).prefix(4), Thread.isMainThread)
        if isFirst { Broadcast.shared.post("com.example.only-foundation") } else { exit(0) }
        isFirst = false
    }
    Broadcast.shared.post("com.example.only-foundation")
    withExtendedLifetime(token) { RunLoop.main.run() }
}
