# SPDX-License-Identifier: Apache-2.0
"""Messages of D-Bus as bytes."""

from __future__ import annotations

import struct
from typing import Any, Iterator, NamedTuple

CALL, RETURN, ERROR, SIGNAL = 1, 2, 3, 4
NO_REPLY, NO_AUTO_START = 1, 2

_FIELDS = {1: "path", 2: "interface", 3: "member", 4: "error", 5: "reply", 6: "destination", 7: "sender", 8: "signature"}
_CODES = {field: code for code, field in _FIELDS.items()}
_TYPES = {"path": "o", "reply": "u", "signature": "g"}
_FIXED = {"y": "B", "b": "I", "n": "h", "q": "H", "i": "i", "u": "I", "h": "I", "x": "q", "t": "Q", "d": "d"}
_ALIGNMENT = {"s": 4, "o": 4, "a": 4, "(": 8, "{": 8, "g": 1, "v": 1}
_ALIGNMENT.update({code: struct.calcsize(form) for code, form in _FIXED.items()})
# The specification's own limits.
_HEADER_LIMIT, _MESSAGE_LIMIT = 2**26, 2**27


class Message(NamedTuple):
    """A message that has arrived. Only the fields that NotifyBus uses are here."""

    kind: int
    flags: int
    serial: int
    fields: dict[str, Any]
    order: str
    data: bytes

    def get(self, field: str) -> Any:
        """A field of the header, such as `path`; `None` if it is missing."""
        return self.fields.get(field)

    def body(self) -> list[Any]:
        """The arguments."""
        signature, at, values = self.fields.get("signature", ""), 0, []
        if signature == "s":  # As of posts.
            return [_read(self.data, self.order, 0, "s")[0]]
        for each in types(signature):
            value, at = _read(self.data, self.order, at, each)
            values.append(value)
        return values


def types(signature: str) -> Iterator[str]:
    """The complete types of a signature, one by one."""
    at = 0
    while at < len(signature):
        start, depth = at, 0
        while True:
            depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(signature[at], 0)
            at += 1
            if depth == 0 and signature[at - 1] != "a":
                break
        yield signature[start:at]


def _pad(data: bytearray, alignment: int) -> None:
    data += bytes(-len(data) % alignment)


def _write(data: bytearray, signature: str, value: Any) -> None:
    kind = signature[0]
    _pad(data, _ALIGNMENT[kind])
    if kind in _FIXED:
        data += struct.pack("<" + _FIXED[kind], value)
    elif kind in "sog":
        text = value.encode()
        data += struct.pack("<B" if kind == "g" else "<I", len(text)) + text + b"\0"
    elif kind == "v":
        _write(data, "g", value[0])
        _write(data, *value)
    elif kind == "a":
        place = len(data)
        data += bytes(4)
        _pad(data, _ALIGNMENT[signature[1]])
        start = len(data)
        for item in value.items() if isinstance(value, dict) else value:
            _write(data, signature[1:], item)
        struct.pack_into("<I", data, place, len(data) - start)
    else:
        for each, item in zip(types(signature[1:-1]), value):
            _write(data, each, item)


def _read(data: bytes, order: str, at: int, signature: str) -> tuple[Any, int]:
    kind = signature[0]
    at += -at % _ALIGNMENT[kind]
    if kind in _FIXED:
        (value,) = struct.unpack_from(order + _FIXED[kind], data, at)
        return bool(value) if kind == "b" else value, at + _ALIGNMENT[kind]
    if kind in "sog":
        (length,) = struct.unpack_from("B" if kind == "g" else order + "I", data, at)
        at += _ALIGNMENT[kind]
        if at + length >= len(data):
            raise ValueError("A string is longer than its message.")
        return data[at : at + length].decode(), at + length + 1
    if kind == "v":
        inner, at = _read(data, order, at, "g")
        return _read(data, order, at, inner)
    if kind == "a":
        (length,) = struct.unpack_from(order + "I", data, at)
        at += 4
        at += -at % _ALIGNMENT[signature[1]]
        end, items = at + length, []
        while at < end:
            item, at = _read(data, order, at, signature[1:])
            items.append(item)
        return dict(items) if signature[1] == "{" else items, at
    values = []
    for each in types(signature[1:-1]):
        value, at = _read(data, order, at, each)
        values.append(value)
    return tuple(values), at


def marshal(kind: int, serial: int, flags: int, fields: dict[str, Any], arguments: tuple[Any, ...]) -> bytes:
    """A message as bytes. The arguments are those of `fields["signature"]`."""
    body, header = bytearray(), bytearray()
    for each, value in zip(types(fields.get("signature", "")), arguments):
        _write(body, each, value)
    entries = [(_CODES[field], (_TYPES.get(field, "s"), value)) for field, value in fields.items()]
    _write(header, "a(yv)", entries)
    # The alignment of an array's elements is that of the message: the array begins after 12 bytes.
    start = struct.pack("<cBBBII", b"l", kind, flags, 1, len(body), serial)
    data = bytearray(start) + header[:4] + header[8:]
    _pad(data, 8)
    return bytes(data + body)


class Parser:
    """Cuts what a bus sends into messages."""

    def __init__(self) -> None:
        self._data = bytearray()
        # The posts of a name by one sender have the same header but for their serial number.
        self._known: dict[bytes, dict[str, Any]] = {}

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are complete now; raises `ValueError` if there can be none such."""
        self._data += data
        start = 0
        try:
            while len(self._data) - start >= 16:
                order = {0x6C: "<", 0x42: ">"}.get(self._data[start])
                if not order or self._data[start + 3] != 1:
                    raise ValueError("The byte order or the version of a message is unknown.")
                length, serial, header = struct.unpack_from(order + "III", self._data, start + 4)
                if header > _HEADER_LIMIT or length > _MESSAGE_LIMIT:
                    raise ValueError("A message is too long.")
                middle = start + 16 + header + -header % 8
                end = middle + length
                if len(self._data) < end:
                    break
                kind, flags = self._data[start + 1], self._data[start + 2]
                fields = self._fields(bytes(self._data[start + 12 : start + 16 + header]), order)
                message = Message(kind, flags, serial, fields, order, bytes(self._data[middle:end]))
                start = end
                yield message
        except (struct.error, IndexError, KeyError, UnicodeDecodeError) as error:
            raise ValueError(f"A message is malformed: {error}") from None
        finally:
            del self._data[:start]

    def _fields(self, header: bytes, order: str) -> dict[str, Any]:
        key = order.encode() + header
        fields = self._known.get(key)
        if fields is None:
            # The padding is what it is in the message, where the array begins at 12.
            entries, _ = _read(header[:4] + bytes(4) + header[4:], order, 0, "a(yv)")
            fields = {_FIELDS[code]: value for code, value in entries if code in _FIELDS}
            # A stranger can send headers of megabytes. That of a post has some 700 bytes at most.
            if len(header) <= 1024:
                if len(self._known) >= 1000:
                    self._known.clear()
                self._known[key] = fields
        return fields
