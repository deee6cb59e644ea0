// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// The commands in units of a real user manager; see Scripts/session/user-session.
@Suite struct SystemdTests {
    /// Runs a bash script in a user's session of systemd's. `$bin` has the commands, and `start NAME COMMAND...` starts
    /// a unit.
    private static func session(_ kind: BusKind, _ script: String) throws -> CommandResult {
        let prelude = """
            set -eu
            bin=$1
            start() {
              printf '[Service]\\nType=%s\\nExecStart=%s\\n' "$2" "${*:3}" >"$HOME/.config/systemd/user/$1.service"
              systemctl --user daemon-reload
              systemctl --user start "$1"
            }

            """
        // The home is not empty afterwards, so it is not this process's to remove.
        let room = #"home=$(mktemp -d) && trap 'rm -rf "$home"' EXIT && "$0" "$1" "$home" bash -c "$2" bash "$3""#
        return try run(
            "bash",
            [
                "-c", room, "\(packageFolder)/Scripts/session/user-session", kind.rawValue, prelude + script,
                String(try productPath("notify-wait").dropLast("/notify-wait".count)),
            ],
            timeout: .patience
        )
    }

    /// Why there can be no such session here; nil if there can. If it then does not start, the test fails.
    private static let obstacle: String? = {
        let result = try? run("\(packageFolder)/Scripts/session/user-session", ["--check", BusKind.daemon.rawValue])
        return result?.status == 69 ? result?.errorOutput : nil
    }()

    @Test(.enabled(if: obstacle == nil, "\(obstacle ?? "")"), arguments: anyBusKind())
    func `a unit that is stopped while a command waits is inactive, and has not failed`(kind: BusKind) throws {
        let script = #"""
            start plain notify "$bin/notify-wait" -f com.example.x
            start busy notify "$bin/notify-wait" -f com.example.x -- sleep 1001
            start then notify "$bin/notify-wait" com.example.never --then "'sleep 1000'"
            start retry exec "$bin/notify-wait" --retry --address unix:path=/nonexistent com.example.x
            start failing notify /bin/sh -c "'trap \"exit 143\" TERM; systemd-notify --ready; while :; do sleep 0.1; done'"
            "$bin/notify-post" com.example.x
            until grep -aqsz '^1001$' /proc/[0-9]*/cmdline; do sleep 0.05; done
            for unit in plain busy then retry failing; do
              systemctl --user is-active --quiet "$unit" || echo "$unit does not run"
              systemctl --user stop "$unit"
              echo "$unit $(systemctl --user show "$unit" --property ActiveState --value)"
            done
            """#
        let result = try SystemdTests.session(kind, script)
        #expect(result.status == 0, "\(result.errorOutput)")
        // The last is what a program does that ends with 128 + 15 and is not killed by the signal.
        #expect(
            result.lines == [
                "plain inactive", "busy inactive", "then inactive", "retry inactive", "failing failed",
            ]
        )
    }
}
