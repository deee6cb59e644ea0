# SPDX-License-Identifier: Apache-2.0
"""What both parts of the judge know of."""

import collections

SECOND = 10**9
# How long after a moment of trouble a program may still be registering again.
GRACE = 3 * SECOND
# An agent that takes so long to say what the state of a name is has too little of the machine to keep what it promises for two
# seconds.
SLOW = SECOND

Record = collections.namedtuple("Record", "what begin end status name")


class Violation(Exception):
    def __init__(self, rule, who, name, text, times):
        super().__init__(text)
        self.rule, self.who, self.name, self.times = rule, who, name, times
