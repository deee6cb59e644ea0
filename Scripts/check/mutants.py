#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes single lines of the pure machines at random, and sees whether the simulation or a fast test notices.

    mutants.py [--count N] [--seed S] [--draw N --by TEXT] [--only TEXT] [--jobs N] [--list]

All changes are compiled into one program, in a folder of its own, and each run of it makes one of them: 'if cond {' becomes
'if Mutant.flip(17, cond) {', which is the opposite in the run with NOTIFYBUS_MUTANT=17. A line has at most one change. Which
ones are made depends on the seed and on their text, not on their place, so that most stay the same when the sources change.
--draw makes some of these, and --by says which; --only those whose file, line or text contains TEXT.

Prints the changes that nothing notices, unless Tests/Mutants/survivors.txt says why they break no promise.
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import resource
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TREE = ROOT / ".build-mutants"
KNOWN = ROOT / "Tests" / "Mutants" / "survivors.txt"

# What is changed: values that know neither a clock nor a socket.
MACHINES = """
    Sources/Agent/NotifyCoordinator Sources/Library/NotifyNames/CoalescingQueue.swift
    Sources/Library/NotifyCore/Lifecycle/AgentRegistration.swift Sources/Library/NotifyCore/Lifecycle/ObserverGate.swift
    Sources/Library/NotifyCore/Lifecycle/ObserverLifecycle.swift Sources/Library/NotifyCore/Lifecycle/RelayReports.swift
    Sources/Library/NotifyCore/Receiving/RuleReach.swift Sources/Library/NotifyCore/Receiving/SenderDirectory.swift
    Sources/Library/NotifyCore/Posting/PostQueue.swift
    Sources/Library/NotifyWire/WireReader.swift Sources/Library/NotifyWire/MessageReader.swift Sources/Library/NotifyWire/BusMessage.swift
    Sources/Library/NotifyWire/BusValueReader.swift
""".split()

# The targets that are needed for it, and the tests that need no bus.
TARGETS = """
    CDBus CDBusShim CForkGuard CLinux NotifyNames NotifyWire NotifyProtocol NotifyCore NotifyCoordinator Simulation simulate
    bus-launcher stranger TestThreads TestSupport CDBusReference MessageComparison
    NotifyCoordinatorTests NotifyBusTests
""".split()
TESTS = """
    CoalescingQueueTests.swift MessageReaderTests.swift ObjectTableTests.swift ObserverLifecycleTests.swift
    OutgoingMessageTests.swift RegistryTests.swift RelayReportsTests.swift RuleReachTests.swift SenderDirectoryTests.swift
    StreamReaderTests.swift WireFormatTests.swift WireReaderTests.swift
""".split()

# The tests that take more than a tenth of a second, by what their names have.
SLOW = """
    a.table.by.number a.text.with.a.NUL an.escaped.name as.far.as.there.is.room at.most.65.536
    connections.that.have.gone escaping.is.injective every.quota.is.free gets.it..and.a.signal leaves.it.running
    length.it.announces no.post.that.libdbus no.question.is.asked nothing.is.due or.heard.too.often
    than.the.specification that.no.program.hears then.each.name.once what.is.subscribed when.its.first.observer
    within.the.quotas
"""
TESTING = "NotifyBusPackageTests.xctest --testing-library swift-testing --no-parallel"

# What notices, the quickest first. None of them may take more than a few times the processor time that it needs without
# a change, which is measured first, nor this much memory. Tests that measure time judge nothing.
JUDGES = {
    "500 histories": "simulate --threads 1 --count 500",
    "the quick tests": f"{TESTING} --skip costs.no.more|{'|'.join(SLOW.split())}",
    "the other tests": f"{TESTING} --filter {'|'.join(SLOW.split())}",
    "10,000 histories": "simulate --threads 1 --first 501 --count 9500",
    "the small scopes": "simulate --threads 1 --small",
}
MEMORY = 8 << 30

MANIFEST = """
package.products = []
package.targets.removeAll { ![TARGETS].contains($0.name) }
package.targets.append(.target(name: "CMutant"))
for target in package.targets {
    if [MODULES].contains(target.name) { target.dependencies.append("CMutant") }
    if target.name == "NotifyBusTests" {
        target.dependencies = ["NotifyCore", "NotifyWire", "CLinux", "MessageComparison", "TestSupport"]
        target.sources = [TESTS]
    }
    if target.type == .test { target.swiftSettings = [.unsafeFlags(["-Onone"])] }
}

"""
HEADER = """#include <stdbool.h>
extern int mutant_number;
static inline bool mutant(int number) { return number == mutant_number; }
"""
SOURCE = """#include "CMutant.h"
#include <stdlib.h>
int mutant_number;
__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("NOTIFYBUS_MUTANT");
  if (text) mutant_number = atoi(text);
}
"""
SWITCH = """import CMutant

enum Mutant {
    typealias N = Int32
    typealias Later = () -> Bool

    @inline(__always) static func isOn(_ n: N) -> Bool { mutant(n) }
    @inline(__always) static func flip(_ n: N, _ value: Bool) -> Bool { value != mutant(n) }
    @inline(__always) static func one<T: BinaryInteger>(_ n: N) -> T { mutant(n) ? 0 : 1 }
    @inline(__always) static func less<T: Comparable>(_ n: N, _ a: T, _ b: T) -> Bool { mutant(n) ? a <= b : a < b }
    @inline(__always) static func atMost<T: Comparable>(_ n: N, _ a: T, _ b: T) -> Bool { mutant(n) ? a < b : a <= b }
    @inline(__always) static func more<T: Comparable>(_ n: N, _ a: T, _ b: T) -> Bool { mutant(n) ? a >= b : a > b }
    @inline(__always) static func atLeast<T: Comparable>(_ n: N, _ a: T, _ b: T) -> Bool { mutant(n) ? a > b : a >= b }
    @inline(__always) static func and(_ n: N, _ a: Bool, _ b: @autoclosure Later) -> Bool { mutant(n) ? a || b() : a && b() }
    @inline(__always) static func or(_ n: N, _ a: Bool, _ b: @autoclosure Later) -> Bool { mutant(n) ? a && b() : a || b() }
    @inline(__always) static func min<T: Comparable>(_ n: N, _ a: T, _ b: T) -> T { (a < b) != mutant(n) ? a : b }
    @inline(__always) static func max<T: Comparable>(_ n: N, _ a: T, _ b: T) -> T { (a > b) != mutant(n) ? a : b }
}
"""


class Change:
    """A change of the line `old` to `new`. The edits put in both: '#' in their text stands for the change's number."""

    def __init__(self, kind, file, place, row, old, new, edits):
        self.kind, self.file, self.place, self.row = kind, file, place, row
        self.old, self.new, self.edits = old.strip(), new.strip(), edits
        self.key = f"{file}: {place}\n- {self.old}\n+ {self.new}"

    def weight(self, seed):
        return hashlib.sha256(f"{seed}\n{self.key}".encode()).digest()

    def __str__(self):
        return f"{self.file}:{self.row + 1}: {self.place}\n- {self.old}\n+ {self.new}"


# Finding what can be changed


def blank(line):
    """The line without the contents of strings and comments, each character in its place."""
    text = re.sub(r'"(?:\\\(.*?\)|\\.|[^"\\])*"', lambda match: '"' + "_" * (len(match[0]) - 2) + '"', line)
    return text[: text.index("//")].ljust(len(line)) if "//" in text else text


def closing(text, place, end):
    """Where the bracket at this place is closed; nothing if that is beyond the end."""
    depth = 0
    for index in range(place, end):
        depth += (text[index] in "([{") - (text[index] in ")]}")
        if depth == 0:
            return index
    return None


DELIMITER = re.compile(
    r"[,;:](?: |$)| (?:&?[-+*/%|&^])?= | [:?] |\.\.[.<]|-> |"
    r"\b(?:return|if|guard|while|for|where|in|else|case|let|var|try|throw|defer|do|switch)(?: |$)"
)
HEADS = ("if", "guard", "while", "for", "switch", "where")


def regions(text, start, end, depth=0):
    """The parts of expressions between delimiters, at each depth of brackets: begin, end, the delimiters, and the depth."""
    found, begin, place, before, in_head = [], start, start, "", False
    while place < end:
        if text[place] == "{" and in_head:
            found.append((begin, place, before, "", depth))
            begin, before, in_head = place, "{", False
        if text[place] in "([{":
            close = closing(text, place, end)
            found += regions(text, place + 1, end if close is None else close, depth + 1)
            if close is None:
                return found
            place = close + 1
        elif text[place] in ")]}":
            place += 1
            begin, before = place, ")"
        elif match := DELIMITER.match(text, place, end):
            found.append((begin, place, before, match[0].strip(), depth))
            begin, place, before = match.end(), match.end(), match[0].strip()
            in_head = in_head or before in HEADS
        else:
            place += 1
    return found + [(begin, end, before, "", depth)]


def spread(text, start, end, separator):
    """The spans between separators outside of brackets."""
    spans, place = [], start
    begin = start
    while place < end:
        if text[place] in "([{":
            place = closing(text, place, end) or end
        elif text.startswith(separator, place):
            spans.append((begin, place))
            place += len(separator) - 1
            begin = place + 1
        place += 1
    return spans + [(begin, end)]


OPPOSITE = {" == ": " != ", " != ": " == ", " < ": " >= ", " >= ": " < ", " > ": " <= ", " <= ": " > "}
BOUNDARY = {" < ": ("less", " <= "), " <= ": ("atMost", " < "), " > ": ("more", " >= "), " >= ": ("atLeast", " > ")}
KEYWORDS = re.compile(
    r"(let|var|return|case|guard|if|for|while|func|package|private|fileprivate|public|static|init|deinit|switch|defer|throw|"
    r"struct|enum|else|repeat|extension|default|break|continue|fallthrough|do|catch|import|internal|mutating|indirect|"
    r"subscript|get|set|_modify|yield|typealias|assert\w*|precondition\w*|nil|true|false)\b|[^\w($_]"
)
DECLARATION = re.compile(
    r"\s*(?:@\w+ |package |public |private |fileprivate |static |mutating |internal )*"
    r"(?:func (?P<func>[\w]+|==|<)|(?P<init>init)\b|(?:var|subscript) ?(?P<var>\w*).*\{|(?:struct|enum|extension|protocol|class) )"
)


PREDICATE = re.compile(r"(\.(filter|contains|allSatisfy|removeAll|drop|keep|remove|prefix)|where:) \{( \w+ in)? ?$")


class File:
    """A source file, and all changes of single lines that can be made in it."""

    def __init__(self, name):
        self.name = name
        self.lines = (ROOT / name).read_text().split("\n")
        self.texts = [blank(line) for line in self.lines]
        self.changes = []
        place, self.type, in_head, passed = "", None, False, ""
        for row, text in enumerate(self.texts):
            start = 0
            if declaration := DECLARATION.match(text):
                place = declaration["func"] or declaration["init"] or declaration["var"] or ""
                self.type = None
                # Not what is in the signature.
                start = text.index(" {") if " {" in text else len(text)
            if match := re.search(r"(?:-> |\bvar \w+: )([^={]+) \{", text):
                if declaration or text.startswith("    )") or text.strip().startswith(")"):
                    self.type = match[1].strip()
            self.row, self.place, self.passed = row, place, passed
            # A requirement on types is no condition.
            skipped = re.match(r" +where [A-Z]", text) or place in ("hash", "==", "<", "description")
            skipped = skipped or re.search(r"eserveCapacity|keepingCapacity|\.sorted \{", text)
            if text.strip() and not skipped:
                in_head = self.find(text, start, in_head)
            if text.strip():
                passed = text.strip()

    def add(self, kind, edits, plain):
        """Adds a change. Both are pieces to put in: row, begin, end, text."""
        line = self.lines[self.row]
        for row, begin, end, piece in sorted(plain, reverse=True):
            line = line[:begin] + piece + line[end:]
        self.changes.append(Change(kind, self.name, self.place, self.row, self.lines[self.row], line, edits))

    def put_in(self, kind, place, text, plain):
        self.add(kind, [(self.row, place, place, text)], [(self.row, place, place, plain)])

    def find(self, text, start, in_head):
        """Finds the changes of a line.

        `in_head` is whether an 'if', 'guard' or 'while' has begun in a line above; it returns the same for the next line."""
        row = self.row
        head = re.match(r"\s*(?:\} else )?(?:if|guard|while) ", text)
        loop = re.match(r"\s*for .* in ", text)
        body = len(text.rstrip())
        if head or loop or in_head:
            ends = [span[1] for span in spread(text, 0, len(text), " {")[:-1]]
            in_head = not ends
            if ends and text.strip() != "{":
                body = ends[0]
                if text[:body].endswith(" else"):
                    body -= len(" else")
                if loop and " where " not in text:
                    self.put_in("loop skipped", body, " where !Mutant.isOn(#)", " where false")
                elif not loop and not text.lstrip().startswith(("else", "while true")):
                    self.put_in("never true", body, ", !Mutant.isOn(#)", ", false")
            for begin, end, before, after, depth in regions(text, 0, body):
                isClause = depth == 0 and after in ("", ",") and before in ("", "if", "guard", "while", ",")
                self.condition(text, begin, end, before == "where" or isClause and not loop or after == "?")
            start = body
        for begin, end, before, after, depth in regions(text, start, len(text.rstrip())):
            isReturned = self.type == "Bool" and after == "" and (
                before == "return" or depth == 0 and before == ":" and text.lstrip().startswith(("case ", "default:"))
                or depth == 0 and before == "" and self.isAlone(text) or depth == 1 and before == "" and "Bool {" in text
            )
            isPredicate = after != "in" and PREDICATE.search(text[:begin])
            isHead = before == "where" and after in ("", ":") or before in ("if", "guard", "while") and after == ""
            self.condition(text, begin, end, isHead or isReturned or isPredicate or after == "?")
            isParameter = re.match(r" +(_ )?\w+( \w+)?: \w+ = ", text)
            value = text[begin:end].strip()
            if value in ("true", "false") and not isParameter and before not in ("case", "let", "var"):
                span = (row, text.index(value, begin), text.index(value, begin) + len(value))
                other = "false" if value == "true" else "true"
                self.add("value flipped", [(*span, f"Mutant.flip(#, {value})")], [(*span, other)])
        for match in re.finditer(r" (?:[-+]|[-+]=|&[-+]=?) (1)\b(?![._])", text[start:]):
            span = (row, start + match.start(1), start + match.end(1))
            self.add("off by one", [(*span, "Mutant.one(#)")], [(*span, "0")])
        for match in re.finditer(r"(?<![\w.])(min|max)\(", text):
            other = "max" if match[1] == "min" else "min"
            span = (row, match.start(), match.end())
            self.add("min or max", [(*span, f"Mutant.{match[1]}(#, ")], [(*span, other + "(")])
        self.statement(text)
        return in_head

    def isAlone(self, text):
        """Whether the line is all that a function consists of."""
        return self.passed.endswith("{") and self.texts[self.row + 1].strip() == "}"

    def condition(self, text, begin, end, isBool):
        """Finds the changes of a condition, or of anything that may be one."""
        while begin < end and text[begin] == " ":
            begin += 1
        while begin < end and text[end - 1] == " ":
            end -= 1
        if begin == end or text[begin:end].startswith(("&& ", "|| ")):
            begin += 3
        if begin >= end or text[begin] in ")]}" or text[begin:end].endswith((" &&", " ||")):
            return
        row = self.row
        segments = spread(text, begin, end, " || ")
        for left, right in zip(segments, segments[1:]):
            self.add(
                "|| to &&",
                [(row, left[0], left[0], "Mutant.or(#, "), (row, left[1], right[0], ", "), (row, right[1], right[1], ")")],
                [(row, left[1], right[0], " && ")],
            )
        for first, last in segments:
            atoms = spread(text, first, last, " && ")
            for left, right in zip(atoms, atoms[1:]):
                self.add(
                    "&& to ||",
                    [(row, first, first, "Mutant.and(#, "), (row, left[1], right[0], ", "), (row, last, last, ")")],
                    [(row, left[1], right[0], " || ")],
                )
            for atom in atoms:
                self.atom(text, *atom, isBool or len(atoms) > 1 or len(segments) > 1)

    def atom(self, text, begin, end, isBool):
        row, line = self.row, self.lines[self.row]
        comparison = next((o for o in OPPOSITE if len(spread(text, begin, end, o)) == 2), None)
        if not comparison and not isBool or text[begin:end].strip() in ("true", "false", "nil", ""):
            return
        if comparison:
            (_, middle), (after, _) = spread(text, begin, end, comparison)
            plain = [(row, middle, after, OPPOSITE[comparison])]
            if comparison in BOUNDARY:
                name, other = BOUNDARY[comparison]
                self.add(
                    f"{comparison.strip()} to {other.strip()}",
                    [(row, begin, begin, f"Mutant.{name}(#, "), (row, middle, after, ", "), (row, end, end, ")")],
                    [(row, middle, after, other)],
                )
        elif line[begin] == "!":
            plain = [(row, begin, begin + 1, "")]
        elif re.search(r" (\?\?|is|as\??) ", text[begin:end]):
            plain = [(row, begin, begin, "!("), (row, end, end, ")")]
        else:
            plain = [(row, begin, begin, "!")]
        self.add("negated", [(row, begin, begin, "Mutant.flip(#, "), (row, end, end, ")")], plain)

    def statement(self, text):
        """A statement that is left out: a line, the body of a case or of 'defer', or a call of several lines."""
        begin = len(text) - len(text.lstrip())
        if label := re.match(r"\s*(case [^\"]*?|default): (?=\S)", text):
            # Where a value is returned, this may be one.
            spans = spread(text, 0, len(text.rstrip()), ": ")
            if len(spans) != 2 or self.type is not None and " = " not in text[label.end() :]:
                return
            begin = spans[1][0]
        elif label := re.match(r"\s*defer \{ (?=.* \}$)", text.rstrip()):
            begin = label.end()
        elif self.passed.endswith((",", "(", "[", "=", "+", "&", "|", "?", "->")) or self.isAlone(text) and self.type is not None:
            return
        if KEYWORDS.match(text, begin):
            return
        row, end = self.row, len(text.rstrip())
        if label and "defer" in label[0]:
            end -= 2
        whole = text[begin:end]
        while sum(map(whole.count, "([{")) > sum(map(whole.count, ")]}")):
            row += 1
            whole += "\n" + self.texts[row].rstrip()
            end = len(self.texts[row].rstrip())
            if row > self.row + 7:
                return
        if re.match(r"\s*([.?:+]|&&|\|\|)", self.texts[row + 1]) or self.place == "init" and " = " in whole:
            return
        first = whole.split("\n")[0]
        assigns = len(spread(first, 0, len(first), " = ")) > 1 or re.match(r"[^(]* (&?[-+*|&])= ", first)
        if not assigns and not re.fullmatch(r"(_ = |try )?[\w.?!$]+(\[.*\]\S*)?( ?[({\[].*[)}])", whole, re.DOTALL):
            return
        edits = [(self.row, begin, begin, "if !Mutant.isOn(#) { "), (row, end, end, " }")]
        last = len(text.rstrip()) if row > self.row else end
        self.add("left out", edits, [(self.row, begin, last, "// left out")])


def all_changes():
    found = []
    for machine in MACHINES:
        path = ROOT / machine
        for file in sorted(path.rglob("*.swift")) if path.is_dir() else [path]:
            found += File(str(file.relative_to(ROOT))).changes
    return found


def choose(changes, seed, count):
    """The first of them in an order that is random, but for one of each line."""
    chosen, rows = [], set()
    for change in sorted(changes, key=lambda change: change.weight(seed)):
        touched = {(change.file, row) for row in range(change.row, max(edit[0] for edit in change.edits) + 1)}
        if not touched & rows and len(chosen) < count:
            rows |= touched
            chosen.append(change)
    return chosen


# Building


def put(file, content):
    """Writes a file, unless it is there already: then it need not be compiled."""
    path = TREE / file
    if not path.exists() or path.read_text() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def changed(file, changes):
    """The content of a file with these changes, by number."""
    lines = (ROOT / file).read_text().split("\n")
    edits = [(*edit[:3], edit[3].replace("#", str(number))) for number, change in changes for edit in change.edits]
    for row, begin, end, text in sorted(edits, reverse=True):
        lines[row] = lines[row][:begin] + text + lines[row][end:]
    # Code that is compiled into other modules could not use the switch.
    return re.sub(r"@(inlinable|usableFromInline)\b", "", "\n".join(lines))


def write(changes):
    """Writes the package with these changes, by number."""
    modules = {machine.split("/")[2]: "/".join(machine.split("/")[:3]) for machine in MACHINES}
    by_file = {}
    for number, change in changes.items():
        by_file.setdefault(change.file, []).append((number, change))
    files = {"Package.swift", *(f"{folder}/Mutant.swift" for folder in modules.values())}
    for path in [*ROOT.glob("Sources/**/*"), *ROOT.glob("Tests/**/*")]:
        file = str(path.relative_to(ROOT))
        if path.suffix in (".swift", ".h", ".c", ".modulemap", ".so"):
            is_machine = path.suffix == ".swift" and file.split("/")[2] in modules
            put(file, changed(file, by_file.get(file, [])) if is_machine else path.read_text())
            files.add(file)
    for path in TREE.glob("[ST]*/**/*.swift"):
        if str(path.relative_to(TREE)) not in files:
            path.unlink()

    def listing(names):
        return ", ".join(f'"{name}"' for name in sorted(names))

    manifest = (ROOT / "Package.swift").read_text()
    marker = "for target in package.targets where target.type != .system {"
    cut = MANIFEST.replace("TARGETS", listing(TARGETS)).replace("MODULES", listing(modules)).replace("TESTS", listing(TESTS))
    put("Package.swift", manifest.replace(marker, cut + marker))
    put("Sources/CMutant/include/CMutant.h", HEADER)
    put("Sources/CMutant/CMutant.c", SOURCE)
    for folder in modules.values():
        put(f"{folder}/Mutant.swift", SWITCH)


def build(changes):
    """Compiles all of them, by number. Those that are no Swift are left out."""
    environment = {**os.environ, "NOTIFYBUS_FLAGS": "development"}
    rejected = TREE / "rejected.txt"
    known = set(rejected.read_text().split("\n\n")) if rejected.exists() else set()
    changes = {number: change for number, change in changes.items() if change.key not in known}
    while True:
        write(changes)
        result = subprocess.run(
            "swift build -c release --build-tests -Xswiftc -enable-testing -Xswiftc -suppress-warnings".split(),
            cwd=TREE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        if result.returncode == 0:
            return changes
        places = {(str(TREE / change.file), change.row): number for number, change in changes.items()}
        bad = set()
        for path, line in re.findall(r"^(/\S+?\.swift):(\d+):\d+: error:", result.stdout, re.MULTILINE):
            # The mistake may begin in a line above.
            near = [places[path, row] for row in range(int(line) - 1, int(line) - 30, -1) if (path, row) in places]
            bad |= set(near[:1])
        if not bad:
            sys.exit(result.stdout[-50000:])
        known |= {changes[number].key for number in bad}
        rejected.write_text("\n\n".join(sorted(known)))
        changes = {number: change for number, change in changes.items() if number not in bad}
        print(f"{len(bad)} changes are no Swift", flush=True)


# Judging


def run(command, number, seconds):
    """Whether it succeeds within so many seconds of processor time, and no test of it fails."""
    environment = dict(os.environ, NOTIFYBUS_MUTANT=str(number), SWIFT_BACKTRACE="enable=no")
    program, *arguments = command.split()
    limited = ["prlimit", f"--cpu={seconds}", f"--as={MEMORY}", "--core=0", str(TREE / ".build/release" / program)]
    with subprocess.Popen(
        limited + arguments, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        # A change that waits for nothing uses no processor time.
        timer = threading.Timer(20 * seconds + 60, process.kill)
        timer.start()
        try:
            for line in process.stdout:
                if line.startswith("✘".encode()):
                    process.kill()
                    return False
            return process.wait() == 0
        finally:
            timer.cancel()


def spent():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def limits():
    """How much processor time each judge may take: many times what it needs."""
    found = {}
    for name, command in JUDGES.items():
        before = spent()
        if not run(command, 0, 600):
            sys.exit(f"without any change this fails: {command}")
        found[name] = int(4 * (spent() - before)) + 5
        print(f"{name}: {spent() - before:.1f} s of processor time without a change", flush=True)
    return found


def read_known():
    """The survivors that are known, and why they are: blocks of a place, two lines, and a reason."""
    known = {}
    for block in KNOWN.read_text().split("\n\n"):
        lines = block.strip().split("\n")
        if not lines[0].startswith("#"):
            if len(lines) < 4 or lines[1][:2] != "- " or lines[2][:2] != "+ ":
                sys.exit(f"{KNOWN} is not understood: {block}")
            # Outside of functions there is no place.
            place = lines[0] + " " if lines[0].endswith(":") else lines[0]
            known["\n".join([place, *lines[1:3]])] = " ".join(lines[3:])
    return known


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--draw", type=int, help="make only so many of these")
    parser.add_argument("--by", default="", help="what decides which")
    parser.add_argument("--only", default="", help="make only those whose place or text contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="print them, and make none")
    options = parser.parse_args()

    every, known = all_changes(), read_known()
    if stale := known.keys() - {change.key for change in every}:
        sys.exit(f"{KNOWN} has what is not in the sources:\n" + "\n".join(stale))
    # Some to spare for those that are no Swift.
    changes = dict(enumerate(choose(every, options.seed, options.count * 5 // 4), 1))
    if options.list:
        for number, change in changes.items():
            print(f"{number} {change.kind}: {change}\n")
        return
    changes = dict(list(build(changes).items())[: options.count])
    print(f"{len(changes)} of {len(every)} changes, by seed {options.seed}", flush=True)
    if options.draw:
        drawn = set(choose(changes.values(), options.by, options.draw))
        changes = {number: change for number, change in changes.items() if change in drawn}
    changes = {number: change for number, change in changes.items() if options.only in str(change)}
    longest = limits()

    def judge(number):
        return next((name for name, command in JUDGES.items() if not run(command, number, longest[name])), None)

    found, survivors = {}, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for number, judgment in zip(changes, pool.map(judge, changes)):
            change = changes[number]
            if judgment is None and change.key not in known:
                survivors += 1
                print(f"\nSURVIVES ({change.kind}, {number}) {change}", flush=True)
            judgment = f"found by {judgment}" if judgment else "listed" if change.key in known else "survive"
            found[judgment] = found.get(judgment, 0) + 1
    print("\n" + ", ".join(f"{count} {how}" for how, count in sorted(found.items())))
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
