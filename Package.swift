// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "NotifyBus",
    products: [
        .library(name: "NotifyBus", targets: ["NotifyBus"]),
        .library(name: "DarwinNotify", targets: ["DarwinNotify"]),
        // What code for Apple's systems imports for notify(3).
        .library(name: "notify", targets: ["notify"]),
        // For C: <notify.h>. 'make build' gives it the name libnotifybus.so.0, by which installed programs find it.
        .library(name: "notifybus", type: .dynamic, targets: ["NotifyBusC"]),
        // All commands: what it is called by decides which it is.
        .executable(name: "notify-commands", targets: ["notify-commands"]),
        // What joins names with other packages, and Foundation: each is empty without the trait of its name.
        .library(name: "NotifyServiceLifecycle", targets: ["NotifyServiceLifecycle"]),
        .library(name: "NotifyConfiguration", targets: ["NotifyConfiguration"]),
        .library(name: "NotifyFoundation", targets: ["NotifyFoundation"]),
        .library(name: "NotifyLogging", targets: ["NotifyLogging"]),
        .library(name: "NotifyGRDB", targets: ["NotifyGRDB"]),
    ],
    // None by default. Without them a dependent fetches nothing but this package, and neither does this package.
    traits: [
        .trait(name: "ServiceLifecycle", description: "Names as services of swift-service-lifecycle."),
        .trait(name: "Configuration", description: "Files of swift-configuration that are read again for a name."),
        .trait(name: "Foundation", description: "Names as typed messages of Foundation's NotificationCenter."),
        .trait(name: "Logging", description: "Centers that log what an administrator should know, with swift-log."),
        .trait(name: "GRDB", description: "Names for the commits of SQLite databases, with GRDB."),
    ],
    dependencies: [
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.8.0"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.0.0"),
        .package(url: "https://github.com/apple/swift-system", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.3"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.8.0"),
    ],
    targets: [
        // The C library, found by pkg-config: Debian splits its headers over two directories.
        .systemLibrary(
            name: "CDBus",
            pkgConfig: "dbus-1",
            providers: [.apt(["libdbus-1-dev"]), .yum(["dbus-devel"])]
        ),
        // The only target that names libdbus.
        .target(name: "CDBusShim", dependencies: ["CDBus"]),
        // Linux calls that Swift's Glibc module does not declare.
        .target(name: "CLinux"),
        // Guards connections to a bus, and what they have open, in the child of fork(2).
        .target(name: "CForkGuard"),
        // What the Makefile puts in the place of a function of the Swift library, in what is installed.
        .target(name: "CSwiftStart"),
        // Asks an X server. It needs the headers of libxcb, and loads the library at run time.
        .target(name: "CXcb"),
        // Names, states and what is observed: values that know neither D-Bus nor Linux.
        .target(name: "NotifyNames"),
        // The connection to a bus: socket, messages, values. It knows no names, and no center.
        .target(name: "NotifyWire", dependencies: ["NotifyNames", "CDBusShim", "CForkGuard", "CLinux"]),
        // What the agent, its relay and observers say to each other: the fields of each message.
        .target(name: "NotifyProtocol", dependencies: ["NotifyWire", "NotifyNames"]),
        // The center, without Dispatch and Swift's concurrency library: what the commands and the C library are made
        // of.
        .target(
            name: "NotifyCore",
            dependencies: ["NotifyProtocol", "NotifyWire", "NotifyNames", "CForkGuard", "CLinux"]
        ),
        // What Swift programs import: the whole interface, with queues, tasks and asynchronous sequences.
        .target(name: "NotifyBus", dependencies: ["NotifyCore"]),

        // What traits add. A dependency without the condition would be fetched by every dependent.
        .target(
            name: "NotifyServiceLifecycle",
            dependencies: [
                "NotifyBus",
                .product(
                    name: "ServiceLifecycle",
                    package: "swift-service-lifecycle",
                    condition: .when(traits: ["ServiceLifecycle"])
                ),
            ]
        ),
        .target(
            name: "NotifyConfiguration",
            dependencies: [
                "NotifyBus",
                .product(
                    name: "Configuration",
                    package: "swift-configuration",
                    condition: .when(traits: ["Configuration"])
                ),
                .product(name: "SystemPackage", package: "swift-system", condition: .when(traits: ["Configuration"])),
                .product(
                    name: "ServiceLifecycle",
                    package: "swift-service-lifecycle",
                    condition: .when(traits: ["ServiceLifecycle"])
                ),
            ]
        ),
        .target(name: "NotifyFoundation", dependencies: ["NotifyBus"]),
        .target(
            name: "NotifyLogging",
            dependencies: [
                "NotifyBus", "NotifyCore",
                .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Logging"])),
            ]
        ),
        .target(
            name: "NotifyGRDB",
            dependencies: [
                "NotifyBus",
                .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["GRDB"])),
                .product(
                    name: "ServiceLifecycle",
                    package: "swift-service-lifecycle",
                    condition: .when(traits: ["ServiceLifecycle"])
                ),
            ]
        ),

        // Darwin's names: notify(3) with its C symbols, and what is added for blocks, in C and in Swift.
        .target(name: "NotifyTokens", dependencies: ["NotifyCore", "CForkGuard", "CLinux"]),
        .target(name: "CDarwinNotify", cSettings: [.define("NOTIFYBUS_WITHOUT_DISPATCH")]),
        .target(
            name: "CNotifyDispatch",
            dependencies: ["CDarwinNotify"],
            cSettings: [.define("NOTIFYBUS_WITHOUT_DISPATCH")]
        ),
        .target(
            name: "NotifyBusC",
            dependencies: ["NotifyTokens", "CNotifyDispatch", "CSwiftStart"],
            exclude: ["libnotifybus.map"],
            linkerSettings: [
                // Programs that load it need no Swift; what is not in the map is not seen from outside, so that a program
                // may carry Swift itself. Its threads outlive dlclose(3), so it must stay.
                .unsafeFlags([
                    "-static-stdlib", "-Xlinker", "-z", "-Xlinker", "nodelete", "-Xlinker",
                    "--version-script=\(Context.packageDirectory)/Sources/Darwin/NotifyBusC/libnotifybus.map",
                ])
            ]
        ),
        // The names that code for Apple's systems calls.
        .target(
            name: "DarwinNotify",
            dependencies: ["NotifyBus", "NotifyCore", "NotifyTokens", "CDarwinNotify", "CRunLoop"]
        ),
        // Runs Foundation's run loop, if the program has one.
        .target(name: "CRunLoop"),
        .target(name: "notify", dependencies: ["DarwinNotify"]),

        // What the commands share: options, exit codes, output.
        .target(name: "CommandSupport", dependencies: ["NotifyCore", "CLinux"]),
        .target(name: "notify-post", dependencies: ["NotifyCore", "CommandSupport", "CLinux"]),
        .target(name: "notify-wait", dependencies: ["NotifyCore", "CommandSupport", "CLinux"]),
        .target(name: "notify-lifecycle", dependencies: ["NotifyAgent", "NotifyCore", "CommandSupport", "CLinux"]),
        .target(name: "notify-state", dependencies: ["NotifyCore", "CommandSupport"]),
        .target(name: "notify-top", dependencies: ["NotifyCore", "CommandSupport"]),

        // What the agent decides: states, programs to be started, events. Values that know neither D-Bus nor Linux.
        .target(name: "NotifyCoordinator", dependencies: ["NotifyNames"]),
        // The lifecycle agent: one loop, and what lives on it.
        .target(
            name: "NotifyAgent",
            dependencies: ["NotifyCoordinator", "NotifyCore", "NotifyNames", "CLinux", "CXcb"],
            exclude: ["Interface"]
        ),
        .target(
            name: "notify-agent",
            dependencies: ["NotifyAgent", "NotifyCoordinator", "NotifyCore", "CommandSupport", "CLinux"]
        ),

        // What is installed: one program for all of them, since each would include the Swift library.
        .target(
            name: "Commands",
            dependencies: [
                "notify-post", "notify-wait", "notify-lifecycle", "notify-state", "notify-top", "notify-agent",
                "CommandSupport", "CLinux",
            ]
        ),
        .executableTarget(name: "notify-commands", dependencies: ["Commands", "CSwiftStart"]),

        // The MQTT client of the Mosquitto project. Only who builds the bridge needs it: SwiftPM looks for nothing that a
        // dependent does not use.
        .systemLibrary(
            name: "CMosquitto",
            pkgConfig: "libmosquitto",
            providers: [.apt(["libmosquitto-dev"]), .yum(["mosquitto-devel"])]
        ),
        // Names across machines: between a bus and an MQTT broker.
        .target(
            name: "NotifyBridge",
            dependencies: ["NotifyCore", "NotifyNames", "CommandSupport", "CLinux", "CMosquitto"]
        ),
        .executableTarget(name: "notify-bridge", dependencies: ["NotifyBridge", "CommandSupport", "CSwiftStart"]),

        // The protocol simulated: an agent, observers, posters and a model of the bus in one thread; and what runs it.
        .target(
            name: "Simulation",
            dependencies: ["NotifyCoordinator", "NotifyCore", "NotifyNames"],
            path: "Tests/Simulation/Model",
            // A million histories are expensive. The tests, which are not optimized, check exclusive access.
            swiftSettings: [.unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))]
        ),
        .executableTarget(name: "simulate", dependencies: ["Simulation"], path: "Tests/Simulation/Runner"),
        .testTarget(name: "SimulationTests", dependencies: ["Simulation", "TestSupport", "simulate"]),

        // Private buses for the tests, on both daemons. The launcher starts dbus-broker even if systemd is not process 1.
        .executableTarget(
            name: "bus-launcher",
            path: "Tests/Support/BusLauncher",
            // Written in C: without these, SwiftPM would link it with Swift's libraries.
            linkerSettings: [.unsafeFlags(["-nostartfiles", "-static-stdlib"])]
        ),
        .executableTarget(name: "stranger", path: "Tests/Support/Stranger"),
        // What 'make chaos' starts in Swift; its other programs are C and Python.
        .executableTarget(
            name: "chaos-witness",
            dependencies: ["NotifyBus", "NotifyCore"],
            path: "Tests/Chaos/Witness"
        ),
        // What 'make bindings-test' talks to; the other languages' programs are in Bindings/conformance/programs.
        .executableTarget(name: "conformance-swift", dependencies: ["NotifyBus"], path: "Bindings/conformance/swift"),
        // More threads for the tests than there are processors.
        .target(name: "TestThreads", path: "Tests/Support/Threads"),
        .target(
            name: "TestSupport",
            dependencies: ["bus-launcher", "stranger", "TestThreads"],
            path: "Tests/Support/TestSupport",
            // Stands in for a library that some toolchains lack.
            linkerSettings: [.unsafeFlags(["-L\(Context.packageDirectory)/Tests/Support/Linking"])]
        ),
        // Our reading of messages beside that of libdbus.
        .target(name: "CDBusReference", dependencies: ["CDBus"], path: "Tests/Fuzzing/Reference"),
        .target(
            name: "MessageComparison",
            dependencies: ["NotifyCore", "CDBusReference"],
            path: "Tests/Fuzzing/Comparison"
        ),
        .target(name: "FuzzDriver", path: "Tests/Fuzzing/Driver"),
        .executableTarget(
            name: "fuzz-messages",
            dependencies: ["NotifyCore", "MessageComparison", "FuzzDriver"],
            path: "Tests/Fuzzing/Fuzzer"
        ),
        // What the agent, its relay, its launcher and observers make of anything that others may say.
        .executableTarget(
            name: "fuzz-agent",
            dependencies: ["NotifyAgent", "NotifyCoordinator", "NotifyCore", "NotifyNames", "FuzzDriver"],
            path: "Tests/Fuzzing/Agent"
        ),
        .testTarget(
            name: "NotifyBusTests",
            dependencies: ["NotifyBus", "NotifyCore", "NotifyWire", "CLinux", "MessageComparison", "TestSupport"]
        ),
        .testTarget(
            name: "LifecycleTests",
            dependencies: ["NotifyBus", "NotifyCore", "TestSupport", "notify-commands"]
        ),
        .executableTarget(
            name: "notify-swift-programs",
            dependencies: ["notify", "NotifyBus"],
            path: "Tests/Darwin/NotifyTests/SwiftPrograms"
        ),
        .executableTarget(
            name: "notify-swift-programs-foundation",
            dependencies: ["notify", "NotifyBus"],
            path: "Tests/Darwin/NotifyTests/SwiftProgramsWithFoundation",
            swiftSettings: [.define("WITH_FOUNDATION"), .swiftLanguageMode(.v5)]
        ),
        // Links the C symbols, and imports nothing.
        .executableTarget(
            name: "notify-by-hand",
            dependencies: ["notify"],
            path: "Tests/Darwin/NotifyTests/SwiftByHand"
        ),
        // Sees 'notify' as Darwin.
        .executableTarget(
            name: "notify-as-darwin",
            dependencies: ["notify"],
            path: "Tests/Darwin/NotifyTests/SwiftAsDarwin",
            swiftSettings: [.unsafeFlags(["-module-alias", "Darwin=notify"])]
        ),
        .testTarget(
            name: "NotifyTests",
            dependencies: [
                "NotifyTokens", "NotifyCore", "CDarwinNotify", "TestSupport", "notify-commands",
                "notify-swift-programs", "notify-swift-programs-foundation", "notify-by-hand", "notify-as-darwin",
            ],
            exclude: [
                "Programs", "SwiftPrograms", "SwiftProgramsWithFoundation", "SwiftByHand", "SwiftAsDarwin",
                "Library/exports.txt",
            ]
        ),
        .testTarget(
            name: "CommandTests",
            dependencies: [
                "NotifyCore", "CommandSupport", "TestSupport", "notify-post", "notify-wait", "notify-top",
                "notify-commands",
            ]
        ),
        // The same programs twice: as they are, and as old code with Foundation beside it. The second folder is a link.
        .executableTarget(
            name: "darwin-programs",
            dependencies: ["DarwinNotify", "NotifyBus", "NotifyCore"],
            path: "Tests/Darwin/DarwinNotifyTests/Programs"
        ),
        .executableTarget(
            name: "darwin-programs-foundation",
            dependencies: ["DarwinNotify", "NotifyBus", "NotifyCore"],
            path: "Tests/Darwin/DarwinNotifyTests/ProgramsWithFoundation",
            swiftSettings: [.define("WITH_FOUNDATION"), .swiftLanguageMode(.v5)]
        ),
        // Files that are not changed at all, compiled as Documentation/porting.md says.
        .executableTarget(
            name: "darwin-unchanged",
            dependencies: ["DarwinNotify"],
            path: "Tests/Darwin/DarwinNotifyTests/Unchanged",
            swiftSettings: [
                .unsafeFlags(
                    [
                        "-Xfrontend", "-import-module", "-Xfrontend", "DarwinNotify",
                        "-module-alias", "CoreFoundation=DarwinNotify",
                    ],
                    .when(platforms: [.linux])
                ),
                .swiftLanguageMode(.v5),
            ]
        ),
        .executableTarget(
            name: "darwin-async-main",
            dependencies: ["DarwinNotify"],
            path: "Tests/Darwin/DarwinNotifyTests/AsyncMain"
        ),
        .testTarget(
            name: "DarwinNotifyTests",
            dependencies: [
                "DarwinNotify", "NotifyCore", "TestSupport", "darwin-programs", "darwin-programs-foundation",
                "darwin-async-main", "darwin-unchanged",
            ],
            exclude: ["Programs", "ProgramsWithFoundation", "AsyncMain", "Unchanged"]
        ),
        .testTarget(
            name: "ManualTests",
            dependencies: [
                "CommandSupport", "NotifyCore", "TestSupport", "notify-post", "notify-wait", "notify-lifecycle",
                "notify-state", "notify-top", "notify-agent", "notify-commands", "notify-bridge",
            ],
            exclude: ["walks.txt"]
        ),
        .testTarget(name: "NotifyCoordinatorTests", dependencies: ["NotifyCoordinator", "NotifyNames", "TestSupport"]),
        .testTarget(
            name: "RelayTests",
            dependencies: [
                "NotifyAgent", "NotifyCoordinator", "NotifyCore", "NotifyNames", "TestSupport", "notify-commands",
            ]
        ),
        .testTarget(
            name: "NotifyAgentTests",
            dependencies: [
                "NotifyAgent", "NotifyCoordinator", "NotifyCore", "NotifyNames", "CommandSupport", "TestSupport",
                "notify-agent", "notify-commands",
            ]
        ),
        .testTarget(
            name: "BridgeTests",
            dependencies: [
                "NotifyBridge", "NotifyCore", "CommandSupport", "TestSupport", "notify-bridge", "notify-commands",
            ],
            exclude: ["crowd"]
        ),
    ],
    swiftLanguageModes: [.v6]
)

// Who lives where.
let rooms = [
    "Sources/C": ["CDBus", "CDBusShim", "CForkGuard", "CLinux", "CMosquitto", "CSwiftStart", "CXcb"],
    "Sources/Library": ["NotifyNames", "NotifyWire", "NotifyProtocol", "NotifyCore", "NotifyBus"],
    "Sources/Traits": [
        "NotifyServiceLifecycle", "NotifyConfiguration", "NotifyFoundation", "NotifyLogging", "NotifyGRDB",
    ],
    "Sources/Darwin": [
        "NotifyTokens", "NotifyBusC", "CDarwinNotify", "CNotifyDispatch", "CRunLoop", "DarwinNotify", "notify",
    ],
    "Sources/Agent": ["NotifyCoordinator", "NotifyAgent", "notify-agent"],
    "Sources/Commands": [
        "CommandSupport", "Commands", "notify-commands", "notify-post", "notify-wait", "notify-lifecycle",
        "notify-state", "notify-top",
    ],
    "Sources/Bridge": ["NotifyBridge", "notify-bridge"],
    "Tests/Library": ["NotifyBusTests"],
    "Tests/Darwin": ["NotifyTests", "DarwinNotifyTests"],
    "Tests/Agent": ["NotifyCoordinatorTests", "NotifyAgentTests", "LifecycleTests", "RelayTests"],
    "Tests/Commands": ["CommandTests", "ManualTests"],
    "Tests/Bridge": ["BridgeTests"],
    "Tests/Simulation": ["SimulationTests"],
]
for (room, names) in rooms {
    for target in package.targets where names.contains(target.name) { target.path = "\(room)/\(target.name)" }
}

// What the Makefile and CI ask for: words in NOTIFYBUS_FLAGS. Dependents, and a plain 'swift build', get the plain package.
let asked = Set(Context.environment["NOTIFYBUS_FLAGS"]?.split(separator: " ").map(String.init) ?? [])

// 'static', where the system has the archives for it: commands that need no shared library at all.
if asked.contains("static") {
    let options = ["-static-executable", "-Xclang-linker", "-static-pie"]
    for target in package.targets {
        switch target.name {
        case "notify-commands":
            target.linkerSettings = [
                .unsafeFlags(options), .linkedLibrary("xcb"), .linkedLibrary("Xau"), .linkedLibrary("Xdmcp"),
            ]
        case "CXcb": target.cSettings = [.define("NOTIFYBUS_LINKS_XCB")]
        default: break
        }
    }
}

for target in package.targets where target.type != .system {
    var settings = target.swiftSettings ?? []
    settings += [
        // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0335-existential-any.md
        .enableUpcomingFeature("ExistentialAny"),
        // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0409-access-level-on-imports.md
        .enableUpcomingFeature("InternalImportsByDefault"),
        // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0444-member-import-visibility.md
        .enableUpcomingFeature("MemberImportVisibility"),
        // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0461-async-function-isolation.md
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ]
    // What is C may check its buffers. Not where Swift reads the headers, in which two functions of each name would be.
    let isC = ["CDBusShim", "CForkGuard", "CLinux", "CXcb", "CDarwinNotify", "CNotifyDispatch", "CRunLoop"]
    if isC.contains(target.name) {
        let fortify: CSetting = .define("_FORTIFY_SOURCE", to: "2", .when(configuration: .release))
        target.cSettings = (target.cSettings ?? []) + [fortify]
    }
    // 'strict', in CI: every warning is an error. Unlike .treatAllWarnings(as:) these flags are the same when the package is
    // built for the benchmarks: see Scripts/build/swift-beside.
    if asked.contains("strict") {
        settings.append(.unsafeFlags(["-warnings-as-errors"]))
        target.cSettings = (target.cSettings ?? []) + [.unsafeFlags(["-Werror"])]
    }
    // 'development', for those who build it often, and run the tests.
    if asked.contains("development") {
        // SwiftPM waits for the whole module anyway, so that a job of its own for the interface saves no time.
        settings.append(.unsafeFlags(["-no-emit-module-separately-wmo"]))
        // The tests do most of their work in these, and what they save then is more than the compiler takes for it.
        let optimized =
            ["NotifyNames", "NotifyWire", "NotifyProtocol", "NotifyCore", "TestSupport"].contains(target.name)
        if optimized {
            settings.append(.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug)))
        }
        // Tests start thousands, and the dynamic linker would need longer for Swift's libraries, and for the addresses in a
        // program that can be anywhere, than most commands run. Sanitizers need a dynamic one, whose malloc(3) the C library
        // calls, too.
        if target.name == "notify-commands" {
            let fixed = ["-static-stdlib", "-Xclang-linker", "-no-pie", "-Xlinker", "--no-export-dynamic"]
            target.linkerSettings =
                (target.linkerSettings ?? []) + [.unsafeFlags(fixed, .when(configuration: .debug))]
        }
        // As a whole, an optimized module takes the compiler half the time, and any other four fifths, but all of it again
        // after each edit: NotifyCore is too large for that. CI edits nothing, and says 'whole'. With one thread
        // there would be one object, and SwiftPM links one for each file.
        if optimized && target.name != "NotifyCore" || asked.contains("whole") {
            let whole = ["-whole-module-optimization", "-num-threads", "2"]
            settings.append(.unsafeFlags(whole, .when(configuration: .debug)))
        }
    }
    target.swiftSettings = settings
}
