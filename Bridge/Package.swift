// swift-tools-version: 6.2

import PackageDescription

// A package of its own, so that those who use NotifyBus never fetch or build it. It uses NotifyBus' public interface
// alone.
let package = Package(
    name: "NotifyBridge",
    products: [.executable(name: "notify-bridge", targets: ["notify-bridge"])],
    dependencies: [.package(name: "NotifyBus", path: "..")],
    targets: [
        // The MQTT client of the Mosquitto project.
        .systemLibrary(
            name: "CMosquitto",
            pkgConfig: "libmosquitto",
            providers: [.apt(["libmosquitto-dev"]), .yum(["mosquitto-devel"])]
        ),
        // For the bridge's own name on the bus, and what it answers there.
        .systemLibrary(
            name: "CBridgeDBus",
            pkgConfig: "dbus-1",
            providers: [.apt(["libdbus-1-dev"]), .yum(["dbus-devel"])]
        ),
        // Linux calls that Swift's Glibc module does not declare.
        .target(name: "CBridgeLinux"),
        .target(
            name: "NotifyBridge",
            dependencies: [
                "CMosquitto", "CBridgeDBus", "CBridgeLinux", .product(name: "NotifyBus", package: "NotifyBus"),
            ]
        ),
        .executableTarget(name: "notify-bridge", dependencies: ["NotifyBridge"]),

        // Private buses and threads, as NotifyBus' own tests have them: all are links to its sources.
        .executableTarget(name: "bus-launcher", path: "Tests/BusLauncher"),
        .target(name: "TestThreads", path: "Tests/Threads"),
        .target(
            name: "BridgeTestSupport",
            dependencies: ["bus-launcher", "TestThreads"],
            path: "Tests/Support",
            exclude: ["Bubblewrap.swift", "CollidingNames.swift", "FlatpakSandbox.swift", "Stranger.swift"],
            linkerSettings: [.unsafeFlags(["-L\(Context.packageDirectory)/../Tests/Linking"])]
        ),
        .testTarget(
            name: "BridgeTests",
            dependencies: [
                "NotifyBridge", "BridgeTestSupport", "notify-bridge",
                .product(name: "NotifyBus", package: "NotifyBus"),
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)

for target in package.targets where target.type != .system {
    var settings: [SwiftSetting] = [
        .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"), .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ]
    if Context.environment["NOTIFYBUS_STRICT"] != nil {
        settings.append(.unsafeFlags(["-warnings-as-errors"]))
        target.cSettings = [.unsafeFlags(["-Werror"])]
    }
    target.swiftSettings = settings
}
