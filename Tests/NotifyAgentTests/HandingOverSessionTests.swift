// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// An agent that a real service manager restarts.
@Suite(.enabled(if: UserSession.obstacle == nil, "\(UserSession.obstacle ?? "")"))
struct HandingOverSessionTests {
    private static let rounds = isLongRun ? 100 : 3

    private func startAgentUnit(_ session: UserSession) throws {
        let agent = try productPath("notify-agent")
        try session.unit(
            "notify-agent.service",
            "[Unit]",
            "StartLimitIntervalSec=0",
            "[Service]",
            "Type=dbus",
            "BusName=org.notifybus.Agent1",
            "ExecStart=\(agent)",
            "FileDescriptorStoreMax=2"
        )
        try session.shell("systemctl --user start notify-agent")
    }

    @Test(arguments: busKinds)
    func `an agent that its service manager restarts hands over what it knows`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try startAgentUnit(session)
        try session.shell(
            """
            notify-wait -v -f com.example.state $(seq -f com.example.n%g 0 799) com.example.last >"$HOME/heard" 2>"$HOME/log" & one=$!
            notify-wait -v -f com.example.n1 com.example.n2 >"$HOME/frozen" 2>"$HOME/frozen.log" & two=$!
            """
        )
        try session.until("grep -q live \"$HOME/log\" && grep -q live \"$HOME/frozen.log\"")
        try session.shell("notify-state com.example.state=42 && notify-lifecycle suspend $one")
        try session.shell("notify-lifecycle suspend --freeze $two && notify-post com.example.n1")
        // Posts all the time, of every name but some.
        try session.shell(
            """
            while [[ ! -e "$HOME/done" ]]; do seq -f com.example.n%g 0 3 699; pause 0.01; done | notify-post - & poster=$!
            for i in $(seq \(Self.rounds)); do
              systemctl --user restart notify-agent
              notify-post com.example.n700
              [[ $(notify-state com.example.state) == 42 ]] || { echo "the state is lost"; false; }
              [[ $(sed -n 's/^State:[[:space:]]*\\(.\\).*/\\1/p' /proc/$two/status) == T ]] || { echo "it runs"; false; }
            done
            touch "$HOME/done"; wait $poster
            """,
            timeout: .seconds(600)
        )
        try session.shell("notify-lifecycle resume $one && notify-post com.example.last")
        try session.until("grep -q last \"$HOME/heard\"")
        let expected =
            (stride(from: 0, to: 700, by: 3).map { "com.example.n\($0)" } + ["com.example.n1", "com.example.n700"])
            .sorted()
        let heard = try session.shell("grep -v last \"$HOME/heard\"").split(separator: "\n").map(String.init)
        #expect(Set(expected).subtracting(heard) == [])
        #expect(Set(heard).subtracting(expected) == [])
        #expect(heard.count == expected.count)
        try session.shell("notify-lifecycle resume $two && notify-post com.example.n2")
        try session.until("grep -q n2 \"$HOME/frozen\"")
        #expect(try session.shell("cat \"$HOME/frozen\"") == "com.example.n1\ncom.example.n2\n")
    }

    @Test(arguments: busKinds)
    func `an agent that its service manager stops leaves nobody stopped`(kind: BusKind) throws {
        let session = try UserSession(kind)
        try startAgentUnit(session)
        try session.shell("notify-wait -v -f com.example.a >\"$HOME/heard\" 2>\"$HOME/log\" & one=$!")
        try session.until("grep -q live \"$HOME/log\"")
        try session.shell("notify-lifecycle suspend --freeze $one && systemctl --user stop notify-agent")
        try session.until("grep -q '^State:.[SR]' /proc/$one/status")
    }
}
