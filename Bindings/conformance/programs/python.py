# SPDX-License-Identifier: Apache-2.0
"""The Python package, told by lines what to do: see Bindings/README.md."""

import asyncio
import sys

import notifybus


def say(*words):
    print(*words, flush=True)


def name_of(word):
    # Whatever the bytes are, the package is to judge them.
    return bytes.fromhex(word[1:]).decode(errors="surrogateescape") + ("*" if word[0] == "p" else "")


KINDS = {
    notifybus.InvalidName: "invalid",
    notifybus.NoBus: "nobus",
    notifybus.QueueFull: "full",
}


class Session:
    def __init__(self):
        self.center = notifybus.Center(
            on_connection=lambda error: say("disconnected" if error else "connected"),
            on_state=lambda state: say("state", state),
        )
        self.observers, self.tasks = {}, {}
        self.may_take = asyncio.Event()
        self.may_take.set()

    async def consume(self, key, names):
        while True:
            await self.may_take.wait()
            try:
                name = await names.__anext__()
            except StopAsyncIteration:
                return
            say("heard", key, "n" + name.encode().hex())

    async def do(self, verb, *words):
        if verb == "observe":
            names = self.center.notifications(*map(name_of, words[1:]))
            await names
            self.observers[words[0]] = names
            self.tasks[words[0]] = asyncio.ensure_future(self.consume(words[0], names))
        elif verb == "cancel":
            self.observers.pop(words[0]).cancel()
            await self.tasks.pop(words[0])
        elif verb == "post":
            await self.center.post(name_of(words[0]))
        elif verb == "many":
            for _ in range(int(words[0])):
                self.center.post_nowait(name_of(words[1]))
            await self.center.flush()
        elif verb == "slow":
            self.may_take.clear()
        elif verb == "fast":
            self.may_take.set()
        elif verb == "report":
            await self.center.report(words[0])
        else:
            raise ValueError(verb)


async def main():
    loop, session = asyncio.get_running_loop(), Session()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            await session.do(*line.split())
            say("done")
        except Exception as error:
            print(f"{line.strip()}: {error!r}", file=sys.stderr)
            say("failed", KINDS.get(type(error), "failed"))
    await session.center.close()


asyncio.run(main())
