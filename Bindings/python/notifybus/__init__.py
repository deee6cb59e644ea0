# SPDX-License-Identifier: Apache-2.0
"""Wake me when X happens: posts and observes names over D-Bus, as NotifyBus does.

    async with notifybus.Center() as center:
        await center.post("com.example.backup.done")
        async for name in center.notifications("com.example.*"):
            print("heard", name)

It takes part in the lifecycle: where notify-agent(8) runs, a program in the background hears nothing, and a suspended
one hears each missed name once when it is resumed. Unlike programs with the NotifyBus library it can't be parked: while
it is stopped by SIGSTOP or a freezer, the bus keeps what is posted for it. States of names can't be read or set.

The child of a fork can't use its parent's center, where every call raises `Closed`; a new one works.

`notifybus.blocking` has the same for scripts without an event loop. A name is a hint: look yourself before you act on it.
"""

from ._center import Center
from ._errors import Closed, InvalidName, NoBus, NotifyBusError, QueueFull, Refused
from ._registration import Notifications, Observation

__version__ = "1.0.0-beta.1"
__all__ = [
    "Center",
    "Closed",
    "InvalidName",
    "NoBus",
    "Notifications",
    "NotifyBusError",
    "Observation",
    "QueueFull",
    "Refused",
]
