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

    def judge(self, row):
        """The measured value, its quartiles, and whether the goal is met; None where it was not measured."""
        samples = row.ratios(self.label) if self.is_ratio else row.figures.get(self.label, [])
        if not samples:
            return None
        value = median(samples)
        return value, spread(samples), value >= self.limit if self.at_least else value <= self.limit


GOALS = [
    Goal("latency / raw libdbus", "latency", "libdbus", 0.75),
    Goal("latency / sd-bus", "latency", "sd-bus", 0.85),
    Goal("latency / GDBus", "latency", "GDBus", 0.4),
    Goal("99th percentile of latency / sd-bus", "latency-p99", "sd-bus", 1.0),
    Goal("instructions of post + delivery / raw libdbus, same signal", "instructions-both", "libdbus", 0.9),
    Goal("throughput to 1 observer / raw libdbus", "throughput-1", "libdbus", 1.5, at_least=True),
    Goal("throughput to 10 observers / sd-bus", "throughput-10", "sd-bus", 1.3, at_least=True),
    Goal("throughput to 100 observers / sd-bus", "throughput-100", "sd-bus", 1.3, at_least=True),
    Goal("storm, 1 observer / raw libdbus", "storm-1", "libdbus", 30, at_least=True),
    Goal("storm, the last of 10 observers / raw libdbus", "storm-10", "libdbus", 30, at_least=True),
    Goal("bus memory in a storm of equal posts, MB", "growth", "notify-post - to notify-wait -f", 8, is_ratio=False),
    Goal("post with 40,000 other names observed / with 0", "scale-notifybus", "40,000 names", 1.2),
    Goal("post, observer in the background / no observer", "states", "background", 1.05),
    Goal("bus memory then, bytes a post (0: below 1)", "states-memory", "background", 1, is_ratio=False),
    Goal("instructions, post of the Swift center / notify_post of C", "instructions-post", "notify(3)", 1.0, at_least=True),
    Goal("system of 1,000 programs, processor time for a post / libdbus", "system", "libdbus", 0.5),
    Goal("instructions of a post with a string", "instructions-post", "NotifyBus", 1500, is_ratio=False),
    Goal("instructions of a delivery", "instructions-delivery", "NotifyBus", 3500, is_ratio=False),
    Goal("adding an observer / raw libdbus", "add", "libdbus", 1.1),
    Goal("notify_check, nanoseconds", "check", "notify_check", 20, is_ratio=False),
    Goal("notify-post / gdbus emit", "post-command", "gdbus emit", 0.6),
    Goal("notify-post / busctl emit", "post-command", "busctl emit", 0.5),
    Goal("notify-post / dbus-send", "post-command", "dbus-send", 0.7),
    Goal("peak memory, notify-wait / dbus-monitor", "wait-memory", "dbus-monitor", 1.1),
    Goal("idle wake-ups a second, notify-wait -f", "idle-wakeups", "notify-wait -f", 0, is_ratio=False),
    Goal("idle wake-ups a second, agent", "idle-wakeups", "notify-agent, 100 observers", 0, is_ratio=False),
    Goal("memory of the agent with 100 observers, MB", "idle-memory", "notify-agent, 100 observers", 6, is_ratio=False),
    Goal("memory of the agent with 10,000 observers, MB", "agent-memory", "10,000 observers", 24, is_ratio=False),
]


def verdicts(rows):
    """Each goal with what each daemon's run gives for it: daemon, value, quartiles, whether it is met."""
    results = []
    for goal in GOALS:
        judged = [(row.daemon, goal.judge(row)) for row in rows if row.key == goal.key]
        results.append((goal, [(daemon, *verdict) for daemon, verdict in judged if verdict]))
    return results


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
