# SPDX-License-Identifier: Apache-2.0
"""What waits for a center ends when the center is closed: for calls of other threads, and for other tasks."""

import asyncio
import sys
import threading
import time

import notifybus
from notifybus import blocking

ROUNDS, PATIENCE = 20, 60


def end_with(center, calls):
    """Closes a center while other threads are in these calls."""
    outcomes = []

    def run(call):
        try:
            outcomes.append(call())
        except notifybus.Closed:
            outcomes.append(None)

    threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    center.close()
    for thread in threads:
        thread.join(PATIENCE)
    if len(outcomes) < len(calls):
        sys.exit("a call of another thread has not returned")


async def end_tasks(turns):
    """Closes a center while other tasks wait to be live, after so many turns of the loop."""
    center = notifybus.Center()
    await center.post("com.example.first")
    waits = [center.next("com.example.a"), center.observe(print, "com.example.b"), center.next("com.example.c")]
    tasks = [asyncio.ensure_future(each) for each in waits]
    for _ in range(turns):
        await asyncio.sleep(0)
    await center.close()
    done, late = await asyncio.wait(tasks, timeout=PATIENCE)
    if late:
        sys.exit("a task waits for a closed center")
    for task in done:
        if task.cancelled():
            sys.exit("a task was canceled")
        if task.exception() and not isinstance(task.exception(), notifybus.Closed):
            raise task.exception()


for turn in range(ROUNDS):
    center = blocking.Center()
    observation, iterator = center.observe(print, "com.example.a"), center.notifications("com.example.a")
    calls = [lambda: center.next("com.example.b"), lambda: list(iterator), lambda: center.post("com.example.c")]
    end_with(center, calls)
    observation.cancel()
    iterator.close()
    try:
        center.post("com.example.a")
    except notifybus.Closed:
        pass
    else:
        sys.exit("a closed center has posted")
    asyncio.run(end_tasks(turn % 8))
