# SPDX-License-Identifier: Apache-2.0
"""The same for scripts, which have no event loop.

    from notifybus import blocking

    blocking.post("com.example.backup.done")
    with blocking.Center() as center:
        for name in center.notifications("com.example.*", timeout=60):
            print("heard", name)

Each center has a thread of its own. Callbacks run in that thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from typing import Any, Callable, Coroutine, Iterator, TypeVar

from . import _center
from ._errors import Closed
from ._fork import INHERITED, share
from ._registration import Registration

_Result = TypeVar("_Result")


class Observation:
    """Calls a function for each notification, until it is canceled."""

    def __init__(self, center: Center, inner: Registration) -> None:
        self._center, self._inner = center, inner

    def cancel(self) -> None:
        """Ends it. No call begins once this has returned, and outside of the callback none is running."""

        async def cancel() -> None:
            self._inner.cancel()

        if threading.current_thread() is self._center._thread and not self._center._is_inherited:
            self._inner.cancel()
        else:
            try:
                self._center._run(cancel())
            except Closed:
                pass  # That has ended it.


class Center:
    """What `notifybus.Center` is, with methods that block. It can be used by any thread.

    It can't be used by the child of a fork, as of `multiprocessing` with the start method `fork`: there every call but
    `close` raises `Closed`. A new center works.
    """

    def __init__(self, bus: str | None = None, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="notifybus", daemon=True)
        self._thread.start()
        self._lock, self._is_closed = threading.Lock(), False
        self._inner = _center.Center(bus, **options)
        self._is_inherited = False
        share(self)

    def __enter__(self) -> Center:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _leave_to_parent(self) -> None:
        """The child of a fork has not got the thread, and the lock may belong to another one that it has not got."""
        self._lock, self._is_closed, self._is_inherited = threading.Lock(), True, True

    def _run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        if self._is_inherited:
            work.close()
            raise Closed(INHERITED)
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("A callback can't block the thread that runs it; it can post, and cancel.")
        with self._lock:
            if self._is_closed:
                work.close()
                raise Closed("The center is closed.")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return self._result(future)

    def _result(self, future: concurrent.futures.Future[_Result]) -> _Result:
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise Closed("The center is closed.") from None
        except BaseException:
            # Ctrl-C ends what it has interrupted.
            future.cancel()
            raise

    @property
    def state(self) -> str:
        """The lifecycle state: `foreground`, `background` or `suspended`."""
        return self._inner.state

    def post(self, name: str) -> None:
        """Posts a name. When this returns, the bus has routed it to everybody who observes it.

        In a callback it does not wait for that.
        """
        if threading.current_thread() is self._thread and not self._is_inherited:
            self._inner.post_nowait(name)
        else:
            self._run(self._inner.post(name))

    def observe(self, callback: Callable[[str], object], *patterns: str) -> Observation:
        """Calls a function with each name, in the center's thread. When this returns, every later post is heard."""
        return Observation(self, self._run(self._inner.observe(callback, *patterns)))

    def next(
        self, *patterns: str, timeout: float | None = None, once_live: Callable[[], object] | None = None
    ) -> str:
        """The next name that is posted; `once_live` runs in this thread, when every later post is heard.

        Raises `TimeoutError` after so many seconds.
        """
        notifications = self.notifications(*patterns, timeout=timeout)
        try:
            if once_live:
                once_live()
            return next(notifications)
        except StopIteration:
            raise Closed("The center is closed.") from None
        finally:
            notifications.close()

    def notifications(self, *patterns: str, timeout: float | None = None) -> _Iterator:
        """An iterator of names. When this returns, every later post is heard.

        `timeout` is how many seconds each element may take before it raises `TimeoutError`.
        """
        return _Iterator(self, patterns, timeout)

    def close(self) -> None:
        """Leaves the bus, once it has routed what was posted. Iterators end, and calls of other threads return."""
        if self._is_inherited:
            return
        if threading.current_thread() is self._thread:
            raise RuntimeError("A callback can't block the thread that runs it; it can post, and cancel.")
        with self._lock:
            is_first, self._is_closed = not self._is_closed, True
        if not self._thread.is_alive():
            return
        if is_first:
            try:
                self._result(asyncio.run_coroutine_threadsafe(self._leave(), self._loop))
            finally:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop.close()
        else:
            self._thread.join()

    async def _leave(self) -> None:
        """Closes the center, and ends what other threads still wait for: nothing runs once the loop is stopped."""
        try:
            await self._inner.close()
        finally:
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            if rest:
                _, late = await asyncio.wait(rest, timeout=1)
                for task in late:
                    task.cancel()
                if late:
                    await asyncio.wait(late, timeout=1)


class _Iterator(Iterator[str]):
    def __init__(self, center: Center, patterns: tuple[str, ...], timeout: float | None) -> None:
        self._center, self._timeout = center, timeout
        self._inner = center._inner.notifications(*patterns)
        center._run(self._wait(self._inner.start))

    async def _wait(self, work: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
        try:
            return await asyncio.wait_for(work(), self._timeout)
        except asyncio.TimeoutError:
            raise TimeoutError(f"Nothing came within {self._timeout:g} s.") from None

    def __next__(self) -> str:
        try:
            return self._center._run(self._wait(self._inner.__anext__))
        except (StopAsyncIteration, Closed):
            if self._center._is_inherited:
                raise
            raise StopIteration from None

    def close(self) -> None:
        """Ends it."""
        Observation(self._center, self._inner).cancel()


def post(name: str, bus: str | None = None) -> None:
    """Posts a name, and leaves the bus."""
    with Center(bus) as center:
        center.post(name)


def wait(*patterns: str, timeout: float | None = None, bus: str | None = None) -> str:
    """Waits for the next name; raises `TimeoutError` after so many seconds."""
    with Center(bus) as center:
        return center.next(*patterns, timeout=timeout)
