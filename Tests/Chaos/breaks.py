#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks promises in a copy of the sources, one at a time, and checks that the judge finds each within a minute: a judge
that can't find a broken promise is no judge. Without a break nothing may be found.

Usage: breaks.py [--only NAMES] [--daemon NAMES] [--seconds N] [--seed N] [--check]
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TREE = ROOT / ".build-chaos"

# The switch: each break is compiled in, and made in programs that have its name in the environment.
SWITCH = """
import Glibc

private let made = getenv("NOTIFYBUS_BREAK").map { String(cString: $0) }

/// Whether this promise is broken.
package func isBroken(_ what: String) -> Bool { made == what }
"""

# A name, a file, the text there, which must occur once, what replaces it, and the acts that show it soonest; all if empty.
BREAKS = [
    (
        "gate-opens-early", "Library/NotifyCore/Lifecycle/ObserverGate.swift",
        "        openingWaiters.append(waiter)\n",
        """        if isBroken("gate-opens-early"), position == .closed {
            position = .open
            publish(.foreground, &effects)
            finish([waiter], &effects)
            return effects.append(.putRules)
        }
        openingWaiters.append(waiter)
""",
        "background,foreground,suspend,resume",
    ),
    (
        "background-hears", "Library/NotifyCore/Lifecycle/ObserverGate.swift",
        "if position != .closed {\n            position = .closed\n            effects.append(.withdrawRules)",
        """if position != .closed, !isBroken("background-hears") || new != .background {
            position = .closed
            effects.append(.withdrawRules)""",
        "",
    ),
    (
        "pending-name-forgotten", "Library/NotifyCore/Lifecycle/ObserverLifecycle.swift",
        "for text in names {\n            guard let name = try? NotifyName(text), unasked",
        """for text in isBroken("pending-name-forgotten") ? Array(names.dropFirst()) : names {
            guard let name = try? NotifyName(text), unasked""",
        "",
    ),
    (
        "twice-at-resume", "Library/NotifyCore/Lifecycle/ObserverLifecycle.swift",
        "        waiting.remove(order[next])\n",
        """        if isBroken("twice-at-resume"), waiting.remove(order[next]) != nil {
            defer { next -= 1 }
            return order[next]
        }
        waiting.remove(order[next])
""",
        "suspend,resume,background,foreground",
    ),
    (
        "cancel-does-not-hold", "Library/NotifyCore/Center/Observation.swift",
        "        package func cancelAndWait(timeout: Duration?) throws(NotifyBusError) {\n",
        """        package func cancelAndWait(timeout: Duration?) throws(NotifyBusError) {
            if isBroken("cancel-does-not-hold") { return _ = Unmanaged.passRetained(self) }
""",
        "add",
    ),
    (
        "state-forgotten", "Agent/NotifyCoordinator/Coordinator+Registering.swift",
        "        if let state = statement.state {\n            believe(",
        """        if let state = statement.state, !isBroken("state-forgotten") {
            believe(""",
        "background,foreground,kill-agent",
    ),
    (
        "thaw-forgotten", "Agent/NotifyCoordinator/Coordinator+Processes.swift",
        "            case .thaw: emit(.thaw(id))\n",
        """            case .thaw: if !isBroken("thaw-forgotten") { emit(.thaw(id)) }
""",
        "freeze,foreground,resume,background",
    ),
    (
        "post-dropped", "Library/NotifyCore/Posting/Outbox.swift",
        "    private func write(_ name: NotifyName, _ state: inout State) throws(NotifyBusError) -> Bool? {\n",
        """    private func write(_ name: NotifyName, _ state: inout State) throws(NotifyBusError) -> Bool? {
        if isBroken("post-dropped"), name.string.hasSuffix("77") { return false }
""",
        "fork",
    ),
    (
        "bit-not-set", "Agent/NotifyCoordinator/States/PendingNames.swift",
        "        if known.contains(name) { return true }\n",
        """        if known.contains(name) || isBroken("bit-not-set") && name.string.hasSuffix("7") { return true }
""",
        "suspend,resume,background,foreground",
    ),
    (
        "name-state-forgotten", "Agent/NotifyCoordinator/Coordinator+Registering.swift",
        "        restoreStates(newcomer.statement, of: observer.user, by: id)\n        emit(.begin(id))\n",
        """        if !isBroken("name-state-forgotten") {
            restoreStates(newcomer.statement, of: observer.user, by: id)
        }
        emit(.begin(id))
""",
        "state,kill-agent",
    ),
    (
        "nap-forgets", "Agent/NotifyCoordinator/Naps/Naps.swift",
        "        case .frozen: effects += [.thaw(program), .decide(program)]\n",
        """        case .frozen: effects += isBroken("nap-forgets") ? [.decide(program)] : [.thaw(program), .decide(program)]
""",
        "nap",
    ),
    (
        "relay-forgets", "Agent/NotifyCoordinator/Relaying/RelayTable.swift",
        "            client.unanswered = client.queue.take(limit)\n",
        """            client.unanswered = client.queue.take(limit)
            if isBroken("relay-forgets"), client.unanswered.count > 2 { client.unanswered.removeLast() }
            if isBroken("out-of-order") { client.unanswered.reverse() }
""",
        "fork",
    ),
    # In the same place.
    ("out-of-order", "", "", "", "fork"),
]


def broken_files():
    """The sources with all of them, by path."""
    files = {}
    for name, file, old, new, _ in BREAKS:
        if not file:
            continue
        path = f"Sources/{file}"
        text = files.get(path) or (ROOT / path).read_text()
        if text.count(old) != 1:
            sys.exit(f"{name}: what it changes occurs {text.count(old)} times in {path}; write it again")
        files[path] = text.replace(old, new)
    return files


def make():
    """Builds all of them."""
    files = broken_files()
    for path in files:
        if "NotifyNames" not in path and "import NotifyNames" not in files[path]:
            lines = files[path].split("\n")
            files[path] = "\n".join([lines[0], "import NotifyNames", *lines[1:]])
    files["Sources/Library/NotifyNames/Break.swift"] = SWITCH
    for folder in ("Sources", "Tests", "Snippets", "Benchmarks/Sources", "Bindings/conformance/swift"):
        for path in (ROOT / folder).rglob("*"):
            copy = TREE / path.relative_to(ROOT)
            if path.is_symlink():
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.unlink(missing_ok=True)
                copy.symlink_to(path.readlink())
            elif path.is_file():
                put(str(path.relative_to(ROOT)), files.get(str(path.relative_to(ROOT))) or path.read_bytes())
    put("Package.swift", (ROOT / "Package.swift").read_bytes())
    put("Sources/Library/NotifyNames/Break.swift", SWITCH)
    # Not strict: warnings as errors can't be combined with no warnings at all.
    environment = {**os.environ, "NOTIFYBUS_FLAGS": "development"}
    for product in ("notify-commands", "notifybus", "chaos-witness", "bus-launcher"):
        subprocess.run(
            ["swift", "build", "-debug-info-format", "none", "-Xswiftc", "-suppress-warnings", "--product", product],
            cwd=TREE, env=environment, check=True,
        )


def put(file, content):
    """Writes a file of the copy, unless it is so already, in which case it need not be compiled."""
    content = content.encode() if isinstance(content, str) else content
    path = TREE / file
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def is_found(name, acts, daemon, options):
    """Whether the judge finds this broken promise on this bus."""
    command = [
        sys.executable, str(ROOT / "Tests/Chaos/chaos.py"), "--build", str(TREE / ".build/debug"), "--daemon", daemon,
        "--seconds", options.seconds, "--seed", options.seed, "--break", name,
    ]
    result = subprocess.run(command + (["--only", acts] if acts else []), capture_output=True, text=True, check=False)
    found = next((line for line in result.stdout.splitlines() if line.startswith("VIOLATION")), None)
    records = next((line.split()[-1] for line in result.stdout.splitlines() if line.startswith("The records")), None)
    if records:
        shutil.rmtree(records, ignore_errors=True)
    print(f"{name}, {daemon}: {found or 'NOT FOUND ' + result.stderr[-500:]}", flush=True)
    return found is not None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--daemon", default="dbus-daemon dbus-broker", help="one or more of them")
    parser.add_argument("--seconds", default="60")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--check", action="store_true", help="only check that each can be made")
    options = parser.parse_args()
    if options.check:
        broken_files()
        return
    make()
    missed = 0
    for name, _, _, _, acts in BREAKS:
        for daemon in options.daemon.split():
            if not options.only or name in options.only.split(","):
                missed += not is_found(name, acts, daemon, options)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
