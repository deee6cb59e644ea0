# SPDX-License-Identifier: Apache-2.0
"""A child that was forked can't use its parent's centers, but its own; the parent's hear as before."""

import asyncio
import os
import signal
import socket
import sys
import threading
import time
import traceback

import notifybus
from notifybus import blocking

PATIENCE = 60


def in_child(work):
    """Runs this in a child of a fork, which has to end by itself and in time."""
    child = os.fork()
    if not child:
        try:
            signal.alarm(PATIENCE)
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    if os.waitpid(child, 0)[1]:
        sys.exit("a child has failed, or hangs")


def refused(call):
    """Makes a call that has to fail, and to say why."""
    try:
        call()
    except notifybus.Closed as error:
        if "parent" not in str(error):
            sys.exit(f"a child is told: {error}")
    else:
        sys.exit("a child has used the center of its parent")


def sockets():
    """How many sockets of a bus this process has open."""
    count = 0
    for each in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(each))) as found:
                count += found.family == socket.AF_UNIX and bool(found.getpeername())
        except OSError:
            pass
    return count


def own_center():
    """Makes a new one, in two ways."""
    with blocking.Center() as center:
        center.next("com.example.child", timeout=PATIENCE, once_live=lambda: center.post("com.example.child"))

    async def main():
        async with notifybus.Center() as center:
            await center.next("com.example.child", timeout=PATIENCE, once_live=lambda: center.post("com.example.child"))

    asyncio.run(main())


def with_threads():
    """Forks while other threads use a blocking center, and for a callback."""
    heard, live, is_over = [], threading.Condition(), threading.Event()

    def hear(name):
        with live:
            heard.append(name)
            live.notify_all()

    def wait_for(name):
        with live:
            if not live.wait_for(lambda: name in heard, PATIENCE):
                sys.exit(f"the parent has not heard {name}")
            heard.clear()

    def post_all_the_time():
        while not is_over.is_set():
            center.post("com.example.other")

    center = blocking.Center()
    observation, iterator = center.observe(hear, "com.example.a"), center.notifications("com.example.a")
    thread = threading.Thread(target=post_all_the_time, daemon=True)
    thread.start()

    def use():
        if sockets():
            sys.exit("a child keeps the sockets of its parent")
        for call in (
            lambda: center.post("com.example.a"),
            lambda: center.observe(print, "com.example.b"),
            lambda: center.notifications("com.example.b"),
            lambda: center.next("com.example.b", once_live=print),
            lambda: next(iterator),
        ):
            refused(call)
        observation.cancel()
        iterator.close()
        center.close()
        own_center()

    in_child(use)
    center.post("com.example.a")
    wait_for("com.example.a")
    if next(iterator) != "com.example.a":
        sys.exit("the iterator of the parent has heard something else")

    def fork(name):
        in_child(use)
        hear(name)

    center.observe(fork, "com.example.fork")
    center.post("com.example.fork")
    wait_for("com.example.fork")
    is_over.set()
    thread.join()
    center.close()


async def with_tasks():
    """Forks in an event loop, with a center that was used, and with one that was not."""
    center, unused = notifybus.Center(), notifybus.Center()
    iterator = await center.notifications("com.example.a")
    link = center._link

    def use():
        if sockets():
            sys.exit("a child keeps the sockets of its parent")
        for call in (
            lambda: center.post_nowait("com.example.a"),
            lambda: asyncio.run(center.post("com.example.a")),
            lambda: asyncio.run(center.flush()),
            lambda: asyncio.run(center.report("background")),
            lambda: asyncio.run(center.observe(print, "com.example.b")),
            lambda: asyncio.run(center.next("com.example.b")),
            lambda: asyncio.run(iterator.__anext__()),
        ):
            refused(call)
        iterator.cancel()
        asyncio.run(center.close())

        async def first_use():
            await unused.post("com.example.unused")
            await unused.close()

        asyncio.run(first_use())
        own_center()

    in_child(use)
    await center.post("com.example.a")
    await asyncio.wait_for(iterator.__anext__(), PATIENCE)
    if center._link is not link:
        sys.exit("the parent has lost its connection")
    await center.close()
    await unused.close()


def left():
    """A child that lives on keeps no connection of a center that the parent has closed."""
    theirs, ours = os.pipe()
    center = blocking.Center()
    center.observe(print, "com.example.a")
    name = center._inner._link.name
    child = os.fork()
    if not child:
        os.close(ours)
        os.read(theirs, 1)
        os._exit(0)
    center.close()

    async def wait_until_gone():
        async with notifybus.Center() as other:
            await other.post("com.example.b")
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                bus = ("org.freedesktop.DBus", "/org/freedesktop/DBus", "NameHasOwner", "s", name)
                if not (await other._link.ask(*bus))[0]:
                    return
            sys.exit("a child keeps its parent's connection")

    asyncio.run(wait_until_gone())
    os.close(ours)
    os.waitpid(child, 0)


for _ in range(3):
    with_threads()
    asyncio.run(with_tasks())
left()
