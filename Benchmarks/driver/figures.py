# SPDX-License-Identifier: Apache-2.0
"""Rows of figures, their medians, their spread and their ratios."""

from dataclasses import dataclass, field
from statistics import median, quantiles

OURS = "NotifyBus"
BARE = "no library"


def spread(samples):
    """The first and the third quartile."""
    if len(samples) < 2:
        return (samples[0], samples[0])
    first, _, third = quantiles(samples, n=4, method="inclusive")
    return (first, third)


def percentile(samples, part):
    """The smallest sample that `part` of all are not above."""
    return sorted(samples)[max(0, min(len(samples) - 1, int(part * len(samples))))]


@dataclass
class Row:
    """One thing that was measured, for several ways of doing it, in rounds that took turns."""

    key: str
    title: str
    unit: str
    daemon: str
    more_is_better: bool = False
    # What to compare with. Ratios are ours / theirs; for a baseline, theirs / baseline.
    reference: str = OURS
    is_baseline: bool = False
    note: str = ""
    figures: dict = field(default_factory=dict)
    missing: dict = field(default_factory=dict)

    def add(self, label, sample):
        """Adds a round's figure."""
        self.figures.setdefault(label, []).append(sample)

    def lack(self, label, reason):
        """Says why there is no figure."""
        self.missing.setdefault(label, str(reason))
        self.figures.pop(label, None)

    def ratios(self, label):
        """The ratio of each round."""
        ours, theirs = self.figures.get(self.reference, []), self.figures.get(label, [])
        pairs = zip(theirs, ours, strict=False) if self.is_baseline else zip(ours, theirs, strict=False)
        return [over / under for over, under in pairs if under]

    def ratio(self, label):
        """The median of the ratios of all rounds; None where there are none."""
        ratios = self.ratios(label)
        return median(ratios) if ratios and label != self.reference else None

    def as_json(self):
        """What goes into results.json."""
        entries = []
        for label, samples in self.figures.items():
            entry = {"what": label, "median": _short(median(samples)), "quartiles": list(map(_short, spread(samples)))}
            if (ratio := self.ratio(label)) is not None:
                entry |= {"ratio": _short(ratio), "ratio_quartiles": list(map(_short, spread(self.ratios(label))))}
            entries.append(entry | {"rounds": len(samples)})
        row = {"key": self.key, "title": self.title, "unit": self.unit, "daemon": self.daemon}
        row |= {"more_is_better": self.more_is_better, "reference": self.reference}
        row |= {"ratio": "each / reference" if self.is_baseline else "reference / each", "note": self.note}
        return row | {"figures": entries, "missing": self.missing}


def _short(number):
    return float(f"{number:.5g}")
