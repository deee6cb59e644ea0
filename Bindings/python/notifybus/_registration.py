# SPDX-License-Identifier: Apache-2.0
"""What is observed, and how it is heard."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Generator

from ._names import Subject
from ._queue import CoalescingQueue

if TYPE_CHECKING:
    from ._center import Center


class Registration:
    """Names that are observed, until it is canceled. A center makes these."""

    def __init__(self, center: Center, patterns: tuple[str, ...]) -> None:
        if not patterns:
            raise ValueError("There must be at least one name.")
        self._center = center
        self._subjects = tuple(dict.fromkeys(Subject.of(pattern) for pattern in patterns))
        self.is_active = False

    def _push(self, name: str) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        """Nothing more comes."""

    def cancel(self) -> None:
        """Ends it. Nothing is heard once this has returned."""
        if self.is_active:
            self.is_active = False
            self._center._remove(self)
            self._end()


class Observation(Registration):
    """Calls a function for each notification, on the event loop."""

    def __init__(self, center: Center, callback: Callable[[str], object], patterns: tuple[str, ...]) -> None:
        super().__init__(center, patterns)
        self._callback = callback

    def _push(self, name: str) -> None:
        try:
            self._callback(name)
        except Exception as error:  # pylint: disable=broad-except
            context = {"message": "A NotifyBus callback failed.", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)


class Notifications(Registration):
    """Notifications as an asynchronous iterator, for one task.

    It is live, and hears every later post, once it has been awaited, entered with `async with`, or asked for the first
    element. Up to 4,096 notifications are queued individually until they are fetched, then one for each name.
    """

    def __init__(self, center: Center, patterns: tuple[str, ...]) -> None:
        super().__init__(center, patterns)
        self._queue = CoalescingQueue()
        self._waiting: asyncio.Future[None] | None = None
        self._is_ended = False

    def _push(self, name: str) -> None:
        if not self._queue.put(name):
            self._center.dropped += 1
        self._wake()

    def _end(self) -> None:
        self._is_ended = True
        self._queue.clear()
        self._wake()

    def _wake(self) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(None)

    async def start(self) -> Notifications:
        """Returns when every later post is heard. Awaiting the object itself does the same."""
        if not self.is_active and not self._is_ended:
            await self._center._add(self)
        return self

    def __await__(self) -> Generator[Any, None, Notifications]:
        return self.start().__await__()

    async def __aenter__(self) -> Notifications:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        self.cancel()

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        await self.start()
        while not self._queue:
            if self._is_ended:
                raise StopAsyncIteration
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        return self._queue.take()
