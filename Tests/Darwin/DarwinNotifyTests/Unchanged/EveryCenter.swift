// SPDX-License-Identifier: Apache-2.0

// A typed wrapper that names all of Core Foundation's centers, tells them apart by equality, and passes objects on.
import CoreFoundation
import Foundation

enum Center: CaseIterable {
    case local, darwin, distributed

    var center: CFNotificationCenter {
        switch self {
        case .local: return CFNotificationCenterGetLocalCenter()
        case .darwin: return CFNotificationCenterGetDarwinNotifyCenter()
        case .distributed: return CFNotificationCenterGetDistributedCenter()
        }
    }

    init?(_ center: CFNotificationCenter) {
        switch center {
        case CFNotificationCenterGetLocalCenter(): self = .local
        case CFNotificationCenterGetDarwinNotifyCenter(): self = .darwin
        case CFNotificationCenterGetDistributedCenter(): self = .distributed
        default: return nil
        }
    }

    func observe(_ observer: Listener, _ name: CFNotificationName?, by object: AnyObject? = nil) {
        CFNotificationCenterAddObserver(
            center,
            Unmanaged.passUnretained(observer).toOpaque(),
            { center, observer, name, object, userInfo in
                guard let center, let observer, let name, let kind = Center(center) else { return }
                let listener = Unmanaged<Listener>.fromOpaque(observer).takeUnretainedValue()
                let sender = object.map { Unmanaged<Listener>.fromOpaque($0).takeUnretainedValue() }
                let count = (userInfo as? [String: Int])?["count"]
                listener.heard(kind, name.rawValue as String, sender, count)
            },
            name?.rawValue,
            object.map { UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque()) },
            .coalesce
        )
    }

    func post(_ name: CFNotificationName, by object: AnyObject? = nil, _ userInfo: [String: Int]) {
        CFNotificationCenterPostNotification(
            center,
            name,
            object.map { UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque()) },
            userInfo as CFDictionary,
            true
        )
    }
}

final class Listener {
    let title: String

    init(_ title: String) { self.title = title }

    func heard(_ center: Center, _ name: String, _ sender: Listener?, _ count: Int?) {
        print(title, "heard", name, "from", sender?.title ?? "nobody", count ?? 0, "in", center)
        if center == .darwin { finish() }
    }
}

extension CFNotificationName {
    static let moved = CFNotificationName("com.example.moved" as CFString)
}

func everyCenter() {
    let anna = Listener("Anna")
    let ben = Listener("Ben")
    for center in Center.allCases { center.observe(anna, .moved) }
    Center.local.observe(ben, .moved, by: anna)
    Center.local.observe(ben, nil, by: ben)
    Center.local.post(.moved, by: anna, ["count": 1])
    Center.local.post(.moved, by: ben, ["count": 2])
    Center.local.post(.moved, ["count": 3])
    CFNotificationCenterRemoveEveryObserver(Center.local.center, Unmanaged.passUnretained(anna).toOpaque())
    Center.local.post(.moved, by: anna, ["count": 4])
    Center.distributed.post(.moved, ["count": 5])
    Center.darwin.post(.moved, by: anna, ["count": 6])
    withExtendedLifetime((anna, ben)) { RunLoop.main.run() }
}
