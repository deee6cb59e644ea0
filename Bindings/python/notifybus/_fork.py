# SPDX-License-Identifier: Apache-2.0
"""What the child of a fork does with the centers and connections of its parent.

The two share every socket: what the child reads is missing in the parent, and a socket that the child keeps open stays
on the bus when the parent has closed it. They also share what the event loop waits with. So the child closes no
transport and no loop, which would make the parent deaf, but only its own descriptors.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

INHERITED = "This center belongs to the parent of a fork; make a new one in the child."

# Each has a method `_leave_to_parent`. The references are weak, so this keeps nothing alive.
_shared: weakref.WeakSet[Any] = weakref.WeakSet()


def share(thing: Any) -> None:
    """Makes the child of a later fork call the method `_leave_to_parent` of something."""
    _shared.add(thing)


def _leave_to_parent() -> None:
    for thing in list(_shared):
        _shared.discard(thing)
        thing._leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)
