# SPDX-License-Identifier: Apache-2.0
"""What is to be reached, and whether it was."""

from dataclasses import dataclass
from statistics import median

from .figures import spread


@dataclass(frozen=True)
class Goal:
    """A limit for one ratio of a row, or for a figure itself."""

    title: str
    key: str
    label: str
    limit: float
    at_least: bool = False
    is_ratio: bool = True
    # Whether it depends on no machine's speed, so that `bench --check` can see that it is met.
    is_checked: bool = False

    def judge(self, row):
        """The measured value, its quartiles, and whether the goal is met; None where it was not measured."""
        samples = row.ratios(self.label) if self.is_ratio else row.figures.get(self.label, [])
        if not samples:
            return None
        value = median(samples)
        return value, spread(samples), value >= self.limit if self.at_least else value <= self.limit


GOALS = [
    Goal("post to callback / no library", "latency", "no library", 1.06),
    Goal("99th percentile of it / sd-bus", "latency-p99", "sd-bus", 1.05),
    Goal("instructions of a post / sd-bus", "instructions-post", "sd-bus", 0.36, is_checked=True),
    # Not checked: on a slow machine callgrind's observer hands callbacks to its other thread, as slow ones are.
    Goal("instructions of a delivery / sd-bus", "instructions-delivery", "sd-bus", 0.3),
    Goal("posts/s to 1 observer / libdbus", "throughput-1", "libdbus", 1.1, at_least=True),
    Goal("posts/s to 10 observers / sd-bus", "throughput-10", "sd-bus", 1.1, at_least=True),
    Goal("posts/s to 100 observers / sd-bus", "throughput-100", "sd-bus", 1.1, at_least=True),
    Goal("storm of ten names, 1 observer / libdbus", "storm-1", "libdbus", 30, at_least=True),
    Goal("storm of ten names, the last of 10 observers / libdbus", "storm-10", "libdbus", 100, at_least=True),
    Goal("bus memory in a storm of equal posts, MB", "growth", "notify-post - to notify-wait -f", 8, is_ratio=False),
    Goal("post while 40,000 other names are observed / none", "scale-notifybus", "40,000 names", 1.2),
    Goal("post with 262,144 rules of others / one", "rules-notifybus", "262,144 rules", 1.2),
    Goal("post, observer in the background / no observer", "states", "background", 1.05),
    Goal("bus memory then, bytes a post", "states-memory", "background", 1, is_ratio=False),
    Goal("bus memory beside a stopped observer of ours, MB", "stalled", "NotifyBus, stopped", 8, is_ratio=False),
    Goal("system of 1,000 programs, processor time for a post / libdbus", "system", "libdbus", 0.5),
    Goal("adding an observer / libdbus", "add", "libdbus", 2.5),
    Goal("commit until another process has seen it / polling", "commit", "polling each ms", 0.2),
    Goal("wake-ups a second while nothing is committed", "commit-wakeups", "NotifyBus", 0, is_ratio=False),
    Goal("latency with many bridges on a broker / with two", "bridges-latency", "2 bridges", 1.2),
    Goal("notify-post / dbus-send", "post-command", "dbus-send", 0.95),
    Goal("peak memory, notify-wait / dbus-monitor", "wait-memory", "dbus-monitor", 1.3),
    Goal("idle wake-ups a second, 100 waiting programs", "idle-wakeups", "100 of notify-wait -f", 0, is_ratio=False),
    Goal("idle wake-ups a second, agent", "idle-wakeups", "notify-agent, 100 observers", 0, is_ratio=False),
    Goal("memory of the agent with 100 observers, MB", "idle-memory", "notify-agent, 100 observers", 6, is_ratio=False),
    Goal("memory of the agent with 10,000 observers, MB", "agent-memory", "10,000 observers", 16, is_ratio=False),
]


def verdicts(rows):
    """Each goal with what each daemon's run gives for it: daemon, value, quartiles, whether it is met."""
    results = []
    for goal in GOALS:
        judged = [(row.daemon, goal.judge(row)) for row in rows if row.key == goal.key]
        results.append((goal, [(daemon, *verdict) for daemon, verdict in judged if verdict]))
    return results


def missed(rows):
    """What to say of each goal that is missed although it depends on no machine's speed."""
    for goal, judged in verdicts(rows):
        for _, value, _, is_met in judged:
            if goal.is_checked and not is_met:
                yield f"{goal.title}: {value:.3g}, but the goal is {goal.limit:g}"


def as_json(rows):
    """What goes into results.json."""
    return [
        {
            "goal": goal.title,
            "limit": f"{'≥' if goal.at_least else '≤'} {goal.limit:g}",
            "measured": [
                {"daemon": daemon, "value": round(value, 3), "quartiles": [round(q, 3) for q in quartiles], "met": met}
                for daemon, value, quartiles, met in judged
            ],
        }
        for goal, judged in verdicts(rows)
    ]
