# SPDX-License-Identifier: Apache-2.0
"""A queue that can't grow without bound, because equal names can be coalesced."""

from __future__ import annotations

import collections

INDIVIDUAL_LIMIT, LIMIT = 4096, 65536


class CoalescingQueue:
    """Up to 4,096 names are queued individually. Beyond that each name waits once, up to 65,536 in all."""

    def __init__(self) -> None:
        self._names: collections.deque[str] = collections.deque()
        # How often each name waits. Kept only once the queue has become long, as it is usually short.
        self._counts: collections.Counter[str] | None = None

    def __len__(self) -> int:
        return len(self._names)

    def put(self, name: str) -> bool:
        """Queues a name, unless one that waits stands for it; tells whether there was room."""
        if len(self._names) >= INDIVIDUAL_LIMIT:
            if self._counts is None:
                self._counts = collections.Counter(self._names)
            if self._counts[name]:
                return True
            if len(self._names) >= LIMIT:
                return False
        self._names.append(name)
        if self._counts is not None:
            self._counts[name] += 1
        return True

    def take(self) -> str:
        """The first name, which waits no longer."""
        name = self._names.popleft()
        if self._counts is not None:
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]
            if len(self._names) < INDIVIDUAL_LIMIT // 2:
                self._counts = None
        return name

    def clear(self) -> None:
        """Forgets everything."""
        self._names.clear()
        self._counts = None
