#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Changes one line of the pure machines at random, and sees whether the simulation or a fast test notices; many times. All
# changes are compiled into one program, which makes one of them when it runs: see 'class Change'.
#
# mutants.py --count N --seed S [--jobs N] [--only FILE]
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
tree = root / ".build-mutants"
survivors = root / "Tests" / "Mutants" / "survivors.txt"

# What is changed: values that know neither the clock nor a socket.
machines = [
    "Sources/NotifyCoordinator",
    "Sources/NotifyCore/Lifecycle/AgentRegistration.swift",
    "Sources/NotifyCore/Lifecycle/LateAdditions.swift",
    "Sources/NotifyCore/Lifecycle/MissedNames.swift",
    "Sources/NotifyCore/Lifecycle/ObserverGate.swift",
    "Sources/NotifyCore/Lifecycle/ObserverLifecycle.swift",
    "Sources/NotifyNames/CoalescingQueue.swift",
    "Sources/NotifyCore/Observing/RuleReach.swift",
    "Sources/NotifyCore/Observing/SenderDirectory.swift",
    "Sources/NotifyCore/Posting/PostQueue.swift",
]

# The targets that are needed for it.
kept = """NotifyNames CDBus CDBusShim CLinux NotifyWire NotifyProtocol NotifyCore NotifyCoordinator Simulation simulate
    bus-launcher stranger Collisions TestThreads TestSupport NotifyCoordinatorTests""".split()

# What makes the changes, in each module that has some.
switch = """
import Glibc

enum Mutant {
    static let number = getenv("NOTIFYBUS_MUTANT").flatMap { Int(String(cString: $0)) } ?? 0
    @inline(__always) static func isOn(_ one: Int) -> Bool { one == number }
    static func flip(_ one: Int, _ condition: Bool) -> Bool { condition != isOn(one) }
    static func one<Number: BinaryInteger>(_ one: Int) -> Number { isOn(one) ? 0 : 1 }
    static func less<Value: Comparable>(_ one: Int, _ a: Value, _ b: Value) -> Bool { isOn(one) ? a <= b : a < b }
    static func atMost<Value: Comparable>(_ one: Int, _ a: Value, _ b: Value) -> Bool { isOn(one) ? a < b : a <= b }
    static func and(_ one: Int, _ a: Bool, _ b: @autoclosure () -> Bool) -> Bool { isOn(one) ? a || b() : a && b() }
    static func or(_ one: Int, _ a: Bool, _ b: @autoclosure () -> Bool) -> Bool { isOn(one) ? a && b() : a || b() }
}
"""


class Change:
    """A change of one line: what it is, and the line with both, of which the program picks one."""

    def __init__(self, file, line, kind, before, make):
        self.file, self.line, self.kind, self.before, self.make = file, line, kind, before.strip(), make

    @property
    def title(self):
        return f"{self.file}: {self.kind}: {self.before}"


def is_balanced(text):
    depth = {"(": 0, "[": 0, "{": 0}
    for character in text:
        if character in depth:
            depth[character] += 1
        for left, right in ("()", "[]", "{}"):
            if character == right:
                depth[left] -= 1
                if depth[left] < 0:
                    return False
    return not any(depth.values()) and text.count('"') % 2 == 0


def split(text, separator):
    """The parts between separators outside of brackets."""
    parts, depth, start, place = [], 0, 0, 0
    while place < len(text):
        if text[place] in "([{":
            depth += 1
        elif text[place] in ")]}":
            depth -= 1
        elif depth == 0 and text.startswith(separator, place):
            parts.append(text[start:place])
            start = place + len(separator)
            place = start
            continue
        place += 1
    return parts + [text[start:]]


operand = r"[\w.]+(?:\([^()]*\))?(?:\[[^\[\]]*\])?(?:\.\w+)*"


def changes_of(file, number, line, body):
    """All changes of a line."""
    text = line.split(" // ")[0].rstrip()

    def add(kind, make):
        found.append(Change(file, number, kind, line, make))

    found = []
    head = re.match(r"^(\s*(?:\} else )?(?:if|guard|while) )(.*?)( else \{.*| \{.*)?$", text)
    where = re.match(r"^(.* where )(.*?)( \{.*)$", text)
    ret = re.match(r"^(\s*(?:return )?)([^=]*(?:==|!=|&&|\|\|).*)()$", text) if body == "Bool" else None
    for match in (head, where, ret):
        if not match or not is_balanced(match[2]):
            continue
        clauses = split(match[2], ", ")
        for place, clause in enumerate(clauses):
            if re.match(r"\s*(let|var|case|try)\b", clause) or not clause.strip() or clause.endswith(","):
                continue
            if " ? " in clause:
                continue

            def put(new, place=place, match=match, clauses=clauses):
                return match[1] + ", ".join(clauses[:place] + [new] + clauses[place + 1 :]) + (match[3] or "")

            add("condition negated", lambda n, c=clause, put=put: put(f"Mutant.flip({n}, ({c}))"))
            for operator, name in ((" && ", "and"), (" || ", "or")):
                parts = split(clause, operator)
                if len(parts) == 2 and not any(len(split(part, o)) > 1 for part in parts for o in (" && ", " || ")):
                    add(
                        f"{operator.strip()} changed",
                        lambda n, p=parts, name=name, put=put: put(f"Mutant.{name}({n}, {p[0]}, {p[1]})"),
                    )
            for operator, name, swapped in (
                (" < ", "less", False), (" <= ", "atMost", False), (" > ", "less", True), (" >= ", "atMost", True),
            ):
                comparison = re.fullmatch(rf"(\s*)({operand}){re.escape(operator)}({operand})", clause)
                if comparison:
                    a, b = (comparison[3], comparison[2]) if swapped else (comparison[2], comparison[3])
                    add(
                        f"{operator.strip()} changed",
                        lambda n, a=a, b=b, name=name, put=put: put(f"Mutant.{name}({n}, {a}, {b})"),
                    )
    one = re.search(r"(?: [+-]=? )(1)\b(?![.\w])", text)
    if one:
        add("off by one", lambda n: text[: one.start(1)] + f"Mutant.one({n})" + text[one.end(1) :])
    literal = re.match(r"^(\s+[\w.?\[\]]+ = )(true|false)$", text)
    if literal:
        add("value flipped", lambda n: f"{literal[1]}Mutant.flip({n}, {literal[2]})")
    statement = re.match(r"^(\s+)((?:_ = )?[\w.?\[\]:, ]*[\w\]?](?:\(.*\)|(?: = | \+= | -= ).*)(?: \{ .* \})?)$", text)
    if (
        statement
        and is_balanced(text)
        and not re.match(
            r"\s+(let|var|return|case|guard|if|for|while|func|package|private|static|default|init|switch|defer|throw|struct|enum|else|repeat|extension|where|try\?)\b",
            text,
        )
        and not text.rstrip().endswith(",")
        and not re.match(r"^\s+\w+: ", text)
    ):
        add("statement dropped", lambda n: f"{statement[1]}if !Mutant.isOn({n}) {{ {statement[2]} }}")
    start = re.match(r"^\s+(?:package |private |fileprivate )?mutating func .*\) \{$", text)
    if start:
        add("returns at once", lambda n: f"{text}\n        if Mutant.isOn({n}) {{ return }}")
    return found


def all_changes():
    found = []
    for machine in machines:
        path = root / machine
        for file in sorted(path.rglob("*.swift")) if path.is_dir() else [path]:
            name = str(file.relative_to(root))
            body = ""
            for number, line in enumerate(file.read_text().split("\n")):
                if re.search(r"\b(func|var)\b", line):
                    body = "Bool" if re.search(r"(-> Bool|: Bool) \{$", line) else ""
                if line.strip().startswith("//") or "hasher" in line or "static func ==" in line:
                    continue
                found += changes_of(name, number, line, body)
    return found


def put(file, content):
    """Writes a file, unless it is there already: then it needs no compiling."""
    path = tree / file
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def write(changes):
    """Writes the sources with these changes, one for each line."""
    changed = {change.file for change in changes.values()}
    listed = subprocess.run(["git", "ls-files", "Sources", "Tests"], cwd=root, capture_output=True, text=True, check=True)
    for file in listed.stdout.split("\n"):
        if file and file not in changed and (root / file).is_file():
            put(file, (root / file).read_bytes())
    names = ", ".join(f'"{name}"' for name in kept)
    manifest = (root / "Package.swift").read_text()
    marker = "for target in package.targets where target.type != .system {"
    head, tail = manifest.split(marker)
    cut = f"package.products = []\npackage.targets.removeAll {{ ![{names}].contains($0.name) }}\n\n"
    put("Package.swift", (head + cut + marker + tail).encode())
    for module in {machine.split("/")[1] for machine in machines}:
        put(f"Sources/{module}/Mutant.swift", switch.encode())
    for file in changed:
        lines = (root / file).read_text().split("\n")
        for number, change in changes.items():
            if change.file == file:
                lines[change.line] = change.make(number)
        put(file, "\n".join(lines).encode())


def build(changes):
    """Compiles all of them. Those that are no Swift are left out."""
    command = "swift build -c release --build-tests -Xswiftc -enable-testing -Xswiftc -suppress-warnings".split()
    for _ in range(12):
        write(changes)
        result = subprocess.run(command, cwd=tree, capture_output=True, text=True)
        if result.returncode == 0:
            return changes
        bad = set()
        for path, line in re.findall(r"(/\S+?\.swift):(\d+):\d+: error:", result.stdout + result.stderr):
            try:
                text = pathlib.Path(path).read_text().split("\n")
            except OSError:
                continue
            # The error may be in a line that follows.
            for distance in range(0, 30):
                place = int(line) - 1 - distance
                number = re.search(r"Mutant\.\w+\((\d+)", text[place]) if 0 <= place < len(text) else None
                if number:
                    bad.add(int(number[1]))
                    break
        if not bad:
            sys.exit((result.stdout + result.stderr)[-3000:])
        changes = {number: change for number, change in changes.items() if number not in bad}
    sys.exit("the changes can't be compiled")


def judge(number):
    """How a change is noticed; nothing if it isn't."""
    environment = dict(os.environ, NOTIFYBUS_MUTANT=str(number))
    products = tree / ".build" / "release"
    package = next(products.glob("*PackageTests.xctest"))
    simulate = str(products / "simulate")
    judges = [
        ("simulation", [simulate, "--count", "2000", "--threads", "1"], 30),
        ("tests", [str(package), "--testing-library", "swift-testing", "--no-parallel"], 60),
        ("exploration", [simulate, "--all", "--small", "--threads", "1"], 60),
        ("simulation", [simulate, "--count", "10000", "--first", "2001", "--threads", "1"], 60),
    ]
    for name, command, limit in judges:
        try:
            result = subprocess.run(command, env=environment, capture_output=True, timeout=limit)
            if result.returncode != 0:
                return name
        except subprocess.TimeoutExpired:
            return name + ", which does not end"
    return None


def read_known():
    """The survivors that are known to change nothing."""
    if not survivors.exists():
        return {}
    known = {}
    for line in survivors.read_text().split("\n"):
        if line and not line.startswith("#"):
            title, _, reason = line.partition(" -- ")
            known[title] = reason
    return known


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="a part of the paths of the files to change")
    parser.add_argument("--list", action="store_true", help="print the changes, and make none")
    options = parser.parse_args()
    every = [change for change in all_changes() if options.only in change.file]
    if options.list:
        for change in every:
            print(f"{change.file}:{change.line + 1}: {change.kind}: {change.before}")
        return
    generator = random.Random(options.seed)
    generator.shuffle(every)
    chosen, lines = {}, set()
    for change in every:
        # One for each line, with some to spare for those that are no Swift.
        if (change.file, change.line) not in lines and len(chosen) < options.count * 5 // 4 + 2:
            lines.add((change.file, change.line))
            chosen[len(chosen) + 1] = change
    chosen = build(chosen)
    chosen = {number: chosen[number] for number in sorted(chosen)[: options.count]}
    if judge(0):
        sys.exit("something fails without any change")
    known = read_known()
    found, bad = {}, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for number, judgement in zip(chosen, pool.map(judge, chosen)):
            change = chosen[number]
            if judgement:
                found[judgement] = found.get(judgement, 0) + 1
            elif change.title in known:
                found["known to change nothing"] = found.get("known to change nothing", 0) + 1
            else:
                bad += 1
                print(f"SURVIVES {change.file}:{change.line + 1}: {change.kind}: {change.before}", flush=True)
    print(f"{len(chosen)} of {len(every)} changes, seed {options.seed}: " + ", ".join(f"{n} by {k}" if "known" not in k else f"{n} {k}" for k, n in sorted(found.items())) + f"; {bad} survive")
    sys.exit(1 if bad else 0)


main()
