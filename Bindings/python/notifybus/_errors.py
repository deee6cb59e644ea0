# SPDX-License-Identifier: Apache-2.0
"""What can go wrong."""

from __future__ import annotations


class NotifyBusError(Exception):
    """Every error of this package."""


class InvalidName(NotifyBusError, ValueError):
    """There can be no such name, or it can't be used in this way."""


class NoBus(NotifyBusError, ConnectionError):
    """The bus can't be reached, or has gone."""


class QueueFull(NotifyBusError):
    """So many different names wait to be written that another one can't: 65,536."""


class Refused(NotifyBusError):
    """The bus or the lifecycle agent has refused something; `name` is the name of the D-Bus error."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class Closed(NotifyBusError):
    """The center was closed."""
