# SPDX-License-Identifier: Apache-2.0
"""Names, and how they are written on a bus: see the article "The wire format"."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from ._errors import InvalidName

RESERVED = ("com.apple.system.", "org.notifybus.system.")
PATH = "/org/notifybus"
LIMIT = 511


def check(name: str) -> bytes:
    """The bytes of a name; raises `InvalidName` unless there can be such a name."""
    try:
        data = name.encode()
    except UnicodeEncodeError:
        raise InvalidName("A name must be valid UTF-8, which has no surrogates.") from None
    if not 1 <= len(data) <= LIMIT:
        raise InvalidName(f"A name must have 1 to {LIMIT} bytes; this one has {len(data)}.")
    if 0 in data:
        raise InvalidName("A name can't contain NUL.")
    return data


def stays_in_process(name: str) -> bool:
    """Whether a name is never sent."""
    return name.startswith("self.")


def path(name: str) -> str:
    """The object path of the posts of a name."""
    return f"{PATH}/reserved" if name.startswith(RESERVED) else PATH


@functools.lru_cache(maxsize=1024)
def interface(name: str) -> str:
    """The interface of the posts of a name: escaped, or hashed if that would be too long for D-Bus."""
    parts = [
        re.sub(rb"^[0-9]|[^A-Za-z0-9]", lambda byte: b"_%02x" % byte[0][0], part) or b"_"
        for part in name.encode().split(b".")
    ]
    escaped = b".".join([b"org.notifybus.n", *parts]).decode()
    if len(escaped) <= 255:
        return escaped
    fnv = 14695981039346656037
    for byte in name.encode():
        fnv = (fnv ^ byte) * 1099511628211 % 2**64
    return f"org.notifybus.h.x{fnv:016x}"


@functools.lru_cache(maxsize=1024)
def is_post(name: str, sent_to: str | None, sent_as: str | None) -> bool:
    """Whether a signal with this path and interface is a post of a name."""
    try:
        check(name)
    except InvalidName:
        return False
    return not stays_in_process(name) and sent_to == path(name) and sent_as == interface(name)


def is_owned(name: str) -> bool:
    """Whether only some user's posts of a name count."""
    return name.startswith("user.uid.")


def may_post(name: str, user: int | None) -> bool:
    """Whether a user's posts of a name count; `None` is a user whom the bus does not know."""
    if not is_owned(name) or user == 0:
        return True
    owner = name.split(".", 3)[2]
    return user is not None and re.fullmatch("0|[1-9][0-9]{0,9}", owner, re.ASCII) is not None and int(owner) == user


class Subject(NamedTuple):
    """What is observed: a name, or everything that begins with a prefix."""

    text: str
    is_prefix: bool

    @classmethod
    def of(cls, pattern: str) -> Subject:
        """What a pattern stands for: `*` and what ends in `.*` are prefixes, anything else is a name."""
        is_prefix = pattern == "*" or pattern.endswith(".*")
        text = pattern[:-1] if is_prefix else pattern
        if text:
            check(text)
        elif not is_prefix:
            raise InvalidName("A name can't be empty.")
        return cls(text, is_prefix)

    def includes(self, name: str) -> bool:
        """Whether posts of a name are meant."""
        return name.startswith(self.text) if self.is_prefix else name == self.text

    def rules(self) -> list[str]:
        """The match rules for it; none for what needs no bus."""
        if stays_in_process(self.text):
            return []
        rule = "type='signal',member='Posted',path='%s'"
        if not self.is_prefix:
            return [rule % path(self.text) + f",interface='{interface(self.text)}'"]
        # The bus refuses a namespace that can't begin a bus name.
        if len(self.text) <= 256 and re.fullmatch(r"([A-Za-z_-][A-Za-z0-9_-]*\.)+", self.text):
            rule += f",arg0namespace='{self.text[:-1]}'"
        # A short prefix, like that of `com.*`, may begin reserved names and others.
        paths = {path(self.text)} | {path(start) for start in RESERVED if start.startswith(self.text)}
        return [rule % each for each in sorted(paths)]
