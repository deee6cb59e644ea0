// swift-tools-version: 6.2

import PackageDescription

// Foundation has the messages of the trait of its name since then. All else is tested with 6.2, too.
#if compiler(>=6.3)
    let hasMessages = true
#else
    let hasMessages = false
#endif

// The tests of the traits. A package of its own, so that nothing else fetches what they need: 'make traits-test'.
let package = Package(
    name: "TraitTests",
    dependencies: [
        .package(
            name: "NotifyBus",
            path: "../..",
            traits: hasMessages
                ? ["ServiceLifecycle", "Configuration", "Foundation", "Logging", "GRDB"]
                : ["ServiceLifecycle", "Configuration", "Logging", "GRDB"]
        ),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.8.0"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.0.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.3"),
        .package(url: "https://github.com/apple/swift-system", from: "1.5.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.8.0"),
    ],
    targets: [
        // The buses of all tests, by a link to their folder.
        .executableTarget(
            name: "bus-launcher",
            path: "Support/BusLauncher",
            linkerSettings: [.unsafeFlags(["-nostartfiles", "-static-stdlib"])]
        ),
        .executableTarget(name: "stranger", path: "Support/Stranger"),
        .target(name: "TestThreads", path: "Support/Threads"),
        .target(
            name: "TestSupport",
            dependencies: ["bus-launcher", "stranger", "TestThreads"],
            path: "Support/TestSupport"
        ),
        .testTarget(
            name: "TraitTests",
            dependencies: [
                "TestSupport", "database-writer", "database-reader", "service-program", "configuration-program",
                "logging-program", "database-program",
                .product(name: "NotifyBus", package: "NotifyBus"),
                .product(name: "NotifyServiceLifecycle", package: "NotifyBus"),
                .product(name: "NotifyConfiguration", package: "NotifyBus"),
                .product(name: "NotifyLogging", package: "NotifyBus"),
                .product(name: "NotifyGRDB", package: "NotifyBus"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            path: "Tests",
            exclude: hasMessages ? [] : ["MessageTests.swift"]
        ),
    ],
    swiftLanguageModes: [.v6]
)

if hasMessages {
    for target in package.targets where target.type == .test {
        target.dependencies += ["messages-program", .product(name: "NotifyFoundation", package: "NotifyBus")]
    }
}

// Several processes that write to a database, and one that reads.
for name in ["Writer", "Reader"] {
    package.targets.append(
        .executableTarget(
            name: "database-\(name.lowercased())",
            dependencies: [
                .product(name: "NotifyBus", package: "NotifyBus"), .product(name: "NotifyGRDB", package: "NotifyBus"),
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            path: name
        )
    )
}

for target in package.targets where target.name != "TestThreads" {
    target.swiftSettings = [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .treatAllWarnings(as: .error),
    ]
}

// The programs of the articles.
for (name, trait, products) in [
    ("service", "ServiceLifecycle", [("ServiceLifecycle", "swift-service-lifecycle"), ("Logging", "swift-log")]),
    ("configuration", "Configuration", [("Configuration", "swift-configuration"), ("SystemPackage", "swift-system")]),
    ("messages", "Foundation", []), ("logging", "Logging", [("Logging", "swift-log")]),
    ("database", "GRDB", [("GRDB", "GRDB.swift")]),
] where trait != "Foundation" || hasMessages {
    let own = ["NotifyBus", "Notify\(trait)"].map { Target.Dependency.product(name: $0, package: "NotifyBus") }
    package.targets.append(
        .executableTarget(
            name: "\(name)-program",
            dependencies: own + products.map { .product(name: $0.0, package: $0.1) },
            path: "Programs/\(name)-program",
            // Otherwise as plain as a reader's.
            swiftSettings: [.treatAllWarnings(as: .error)]
        )
    )
}
