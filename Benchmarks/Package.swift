// swift-tools-version: 6.2

import PackageDescription

// A package of its own, so that those who use NotifyBus never build it.
let package = Package(
    name: "Benchmarks",
    dependencies: [.package(name: "NotifyBus", path: "..")],
    targets: [
        .executableTarget(name: "bench-notifybus", dependencies: [.product(name: "NotifyBus", package: "NotifyBus")])
    ],
    swiftLanguageModes: [.v6]
)

for target in package.targets {
    target.swiftSettings = [
        .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"), .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ]
    if Context.environment["NOTIFYBUS_FLAGS"]?.split(separator: " ").contains("strict") == true {
        target.swiftSettings?.append(.unsafeFlags(["-warnings-as-errors"]))
    }
}
