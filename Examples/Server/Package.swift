// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "Server",
    dependencies: [
        .package(name: "NotifyBus", path: "../..", traits: ["ServiceLifecycle", "Configuration", "Logging"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.20.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.8.0"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.0.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.3"),
        .package(url: "https://github.com/apple/swift-system", from: "1.5.0"),
    ],
    targets: [
        .target(
            name: "Greeting",
            dependencies: [
                .product(name: "NotifyBus", package: "NotifyBus"),
                .product(name: "NotifyConfiguration", package: "NotifyBus"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "SystemPackage", package: "swift-system"),
            ]
        ),
        .executableTarget(
            name: "example-server",
            dependencies: [
                "Greeting",
                .product(name: "NotifyBus", package: "NotifyBus"),
                .product(name: "NotifyLogging", package: "NotifyBus"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SystemPackage", package: "swift-system"),
            ]
        ),
        .testTarget(
            name: "GreetingTests",
            dependencies: [
                "Greeting",
                .product(name: "NotifyBus", package: "NotifyBus"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "SystemPackage", package: "swift-system"),
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)
for target in package.targets { target.swiftSettings = [.treatAllWarnings(as: .error)] }
