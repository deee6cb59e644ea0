// SPDX-License-Identifier: Apache-2.0

/// How the block of a document is tried.
enum Trial {
    /// This bash script gets the block's commands as `$1`, `$2`, …, and all its lines as `$LINES_OF_BLOCK`. It must print the
    /// block's output, whatever the numbers.
    case prints(String)
    /// The same, but the script need only exit with 0 and print these words.
    case says(String, script: String)
    /// Each line is a valid command line, though what it acts on doesn't exist here.
    case understood
    /// It compiles after these lines.
    case compiles(after: String)
    /// Its lines call targets of the Makefile.
    case makes
    /// This file, which CI runs by this target of the Makefile, takes the block from the document.
    case elsewhere(String, target: String)
    /// The program of this service posts this name when a file system is nearly full, and only then.
    case service(posts: String)
    /// It lists files and folders below this one.
    case layout(String)
    /// It is a drawing.
    case picture

    /// By the document, and what the block begins with.
    static let table: [(document: String, beginning: String, trial: Trial)] = [
        (
            "README.md", "$ notify-wait com.apple.screenIsUnlocked",
            .says(
                "mounted\nsynced\nclosed\n",
                script: """
                    # can NAME WORD - makes a program of this name that writes this word.
                    can() { printf '#!/bin/sh\necho %s >>heard\n' "$2" >"$1"; chmod +x "$1"; }
                    can mount mounted; can sync-mail synced; can close-the-vault closed; PATH=$PWD:$PATH
                    while read -r _ command; do
                        observed=${command/notify-wait/notify-wait --ready-file ready}
                        [[ $command != *-f* ]] || observed="exec $observed"
                        eval "$observed" >/dev/null & observer=$!
                        await ready
                        name=$(grep -oE '(com|org)[.][a-zA-Z._]+' <<<"$command")
                        count=$(cat heard 2>/dev/null | wc -l)
                        notify-post "$name"
                        until (($(cat heard 2>/dev/null | wc -l) > count)); do sleep 0.01; done
                        [[ $command != *-f* ]] || kill $observer
                        wait $observer; rm ready
                    done <<<"$LINES_OF_BLOCK"
                    cat heard
                    """
            )
        ),
        // The mock logind must have received what the block sends.
        (
            "Documentation/events.md", "busctl call org.freedesktop.login1",
            .says(
                "",
                script: """
                    export DBUS_SYSTEM_BUS_ADDRESS=$DBUS_SESSION_BUS_ADDRESS
                    ! command -v busctl || ! /usr/bin/python3 -c 'import dbusmock.templates.logind' 2>/dev/null || {
                        /usr/bin/python3 -m dbusmock --system --template logind >mock.log 2>&1 & mock=$!
                        path=/org/freedesktop/login1
                        until busctl call org.freedesktop.login1 $path org.freedesktop.DBus.Mock AddSession ssusb \
                            auto seat0 500 me true >log 2>&1
                        do sleep 0.1; ((SECONDS < 100)) && kill -0 $mock || { cat log mock.log; exit 1; }; done
                        eval "$LINES_OF_BLOCK"
                        locked=$(busctl get-property org.freedesktop.login1 $path/session/auto \
                            org.freedesktop.login1.Session LockedHint)
                        kill $mock
                        [[ $locked == "b true" ]]
                    }
                    """
            )
        ),
        ("Documentation/events.md", "$ notify-lifecycle focus", .understood),
        ("Documentation/events.md", "[Service]", .service(posts: "com.apple.system.lowdiskspace")),
        ("Documentation/sandboxes.md", "finish-args:", .elsewhere("Scripts/check/flatpak", target: "flatpak-test")),
        ("Documentation/versions.md", "$ make release", .elsewhere("Scripts/check/release", target: "release-test")),
        ("CONTRIBUTING.md", "$ make demo", .makes),
        ("CONTRIBUTING.md", "Sources/", .layout(".")),
        ("Benchmarks/README.md", "$ make bench ", .makes),
        ("Sources/Darwin/DarwinNotify/DarwinNotify.docc/DarwinNotify.md", "import DarwinNotify", .compiles(after: "")),
        ("README.md", "$ make build", .prints("eval \"$3\"")),
        (
            "README.md", "notify-wait -t 1h com.example.backup",
            .says(
                "heard all\n",
                script: """
                    printf '#!/bin/sh\\nnotify-post com.example.server\\n' >start-server; chmod +x start-server; PATH+=:$PWD
                    printf 'site:\\n\\t@touch made\\n' >Makefile
                    # until_heard TEST - waits in the background for TEST, which posts until the command has heard it.
                    until_heard() { observed=$!; await ready; until eval "$1"; do sleep 0.05; done; kill $observed; rm -f ready; }
                    while IFS= read -r command; do
                        case $command in
                            *"-t 1h"*) $command --then 'notify-post com.example.backup' ;;
                            *--then*) eval "$command" ;;
                            notify-post*) notify-wait -t 120 com.example.build --then "$command" ;;
                            *make*)
                                eval "exec ${command/ -- / --ready-file ready -- }" &
                                until_heard 'notify-post com.example.site; [[ -e made ]]' ;;
                            *"-f "*)
                                eval "exec $command --ready-file ready" >all &
                                until_heard 'notify-post com.example.any; grep -q com.example.any all' ;;
                            notify-state*)
                                $command &
                                until notify-state set com.example.ready 1 --post; do sleep 0.05; done 2>/dev/null
                                wait $! ;;
                            notify-top) $command --once ;;
                            *) false ;;
                        esac >>log 2>&1 || { cat log; echo "failed: $command"; exit 1; }
                    done <<<"$LINES_OF_BLOCK"
                    echo "heard all"
                    """
            )
        ),
        ("README.md", "dependencies: [", .elsewhere("Scripts/check/dependents", target: "dependents")),
        ("README.md", "import NotifyBus", .compiles(after: "")),
        ("README.md", "CFNotificationCenterPostNotification(", .compiles(after: "import DarwinNotify")),
        // Scripts/check/install installs both ways.
        ("Documentation/installing.md", "$ make build", .makes),
        ("Documentation/installing.md", "export PATH=", .elsewhere("Scripts/check/install", target: "install-test")),
        (
            "Documentation/installing.md", "$ systemctl --user reload dbus",
            .elsewhere("Scripts/check/install", target: "install-test")
        ),
        ("Documentation/installing.md", "$ notify-wait com.example.test --then", .prints("eval \"$1\"")),
        ("Documentation/installing.md", "<busconfig>", .elsewhere("Scripts/check/policy", target: "policy")),
        (
            "Documentation/installing.md", "$ notify-wait --system",
            .prints("export DBUS_SYSTEM_BUS_ADDRESS=$DBUS_SESSION_BUS_ADDRESS; eval \"$1\" 2>&1")
        ),
        ("Documentation/installing.md", "$ make deb", .elsewhere("Scripts/check/deb", target: "deb-test")),
        (
            "Documentation/lifecycle.md", "$ notify-agent &",
            .says(
                "version:",
                script:
                    "touch agent.conf; eval \"$1\"; eval \"$2\"; until notify-lifecycle status | grep version:; do :; done; kill %1 %2"
            )
        ),
        (
            "Documentation/lifecycle.md", "try await NotifyCenter.session.lifecycle.",
            .compiles(after: "import NotifyBus")
        ),
        (
            "Documentation/lifecycle.md", "# ~/.config/notifybus/nap.conf",
            .says(
                "",
                script: """
                    mkdir -p notifybus && printf '%s\\n' "$LINES_OF_BLOCK" >notifybus/nap.conf &&
                        XDG_CONFIG_HOME=$PWD notify-agent --check --config /dev/null
                    """
            )
        ),
        ("Documentation/lifecycle.md", "$ notify-lifecycle status", .says("freezer ", script: "eval \"$1\"")),
        (
            "Documentation/lifecycle.md", "$ busctl --user call",
            .says("", script: "! command -v busctl || eval \"${1/--user/--address=$DBUS_SESSION_BUS_ADDRESS}\"")
        ),
        ("Documentation/lifecycle.md", "$ notify-lifecycle background app:", .understood),
        ("Documentation/lifecycle.md", "let center = NotifyCenter.session", .compiles(after: "import NotifyBus")),
        ("Documentation/lifecycle-protocol.md", "            agent ", .picture),
        ("Documentation/internals.md", "  parked, or cut off", .picture),
        (
            "Documentation/across-machines.md", "# /etc/mosquitto",
            .elsewhere("Tests/Bridge/BridgeTests/DocumentTests.swift", target: "bridge-test")
        ),
        (
            "Documentation/across-machines.md", "# ~/.config/notifybus/bridge.conf",
            .elsewhere("Tests/Bridge/BridgeTests/DocumentTests.swift", target: "bridge-test")
        ),
        (
            "Documentation/across-machines.md", "$ notify-bridge --check",
            .elsewhere("Tests/Bridge/BridgeTests/DocumentTests.swift", target: "bridge-test")
        ),
        (
            "Documentation/from-ios.md", "exec 9>",
            .says(
                "com.example.notes.changed\nhello\n",
                script: """
                    export file=$PWD/notes text=hello
                    notify-wait -t 120 com.example.notes.changed --then "$LINES_OF_BLOCK" && cat notes
                    """
            )
        ),
        (
            "Documentation/from-ios.md", "notify-wait -f com.example.notes.changed",
            .says(
                "hello\n",
                script: """
                    file=$PWD/notes; echo hello >notes
                    eval "${LINES_OF_BLOCK/-f/--ready-file ready}" & await ready
                    notify-post com.example.notes.changed; wait
                    """
            )
        ),
        (
            "Documentation/from-ios.md", "$ mosquitto_pub",
            .elsewhere("Tests/Bridge/BridgeTests/DocumentTests.swift", target: "bridge-test")
        ),
        (
            "Documentation/from-ios.md", "$ notify-wait -f com.example.mail",
            .says(
                "fetched\n",
                script: """
                    printf '#!/bin/sh\necho fetched\n' >fetch-mail; chmod +x fetch-mail; PATH+=:$PWD
                    eval "${1/-f/--ready-file ready}" & await ready
                    notify-post com.example.mail; wait
                    """
            )
        ),
        ("Documentation/porting.md", "dependencies: [", .elsewhere("Scripts/check/dependents", target: "dependents")),
        ("Documentation/porting.md", "import Foundation", .compiles(after: "")),
        (
            "Documentation/porting.md", ".executableTarget(",
            .elsewhere("Tests/Darwin/DarwinNotifyTests/CoreFoundation/UnchangedTests.swift", target: "test")
        ),
        (
            "Documentation/porting.md", "$ dbus-run-session -- sh -c '.build/debug/app",
            .elsewhere("Tests/Darwin/DarwinNotifyTests/CoreFoundation/UsualProgramTests.swift", target: "test")
        ),
        (
            "Documentation/porting.md", "CFNotificationCenter.onError",
            .compiles(after: "import DarwinNotify\nfunc log(_ text: String) { print(text) }")
        ),
    ]
}
