// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "SharedDefaults",
    products: [.library(name: "SharedDefaults", targets: ["SharedDefaults"])],
    dependencies: [
        .package(name: "NotifyBus", path: "../.."),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.0.0"),
    ],
    targets: [
        .target(
            name: "SharedDefaults",
            dependencies: [
                .product(name: "NotifyBus", package: "NotifyBus"), .product(name: "GRDB", package: "GRDB.swift"),
            ]
        ),
        .executableTarget(name: "shared-defaults", dependencies: ["SharedDefaults"]),
    ],
    swiftLanguageModes: [.v6]
)
