#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The peer on python3-dbus, with GLib's loop: a signal of an exported object, and add_signal_receiver.

Speaks the part of harness.c's protocol that one observer and one poster need."""

import os
import struct
import sys
import time

import dbus
import dbus.bus
import dbus.service
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

PATH = "/org/notifybus"
RECORDS = int(os.environ.get("RECORDS_FD", "-1"))
role, address, interface = sys.argv[1:4]
DBusGMainLoop(set_as_default=True)
bus = dbus.bus.BusConnection(address)


class Poster(dbus.service.Object):
    """The object whose signal is the post."""

    @dbus.service.signal(interface, signature="s")
    def Posted(self, name):
        """The signal; the library sends it when this is called."""


def write_record(at, count):
    os.write(1, struct.pack("=qq", at, count))


def observe(report):
    count = 0
    number = int(report.partition(":")[2] or 1)

    def on_posted(name):
        nonlocal count
        count += 1
        if count % number == 0:
            write_record(time.monotonic_ns(), count)

    began = time.monotonic_ns()
    bus.add_signal_receiver(on_posted, "Posted", interface, path=PATH)
    bus.get_name_owner("org.freedesktop.DBus")
    live = time.monotonic_ns()
    write_record(live, live - began)
    GLib.MainLoop().run()


def latency(poster, count, pause, name):
    times = []
    for _ in range(count):
        began = time.monotonic_ns()
        poster.Posted(name)
        bus.flush()
        times.append(struct.unpack("=qq", os.read(RECORDS, 16))[0] - began)
        time.sleep(pause / 1e6)
    print(*times, flush=True)


def burst(poster, count, name):
    began = time.monotonic_ns()
    for _ in range(count):
        poster.Posted(name)
    bus.flush()
    print(began, time.monotonic_ns(), flush=True)


if role == "observer":
    observe(sys.argv[6])
else:
    poster = Poster(bus, PATH)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "latency":
            latency(poster, int(words[1]), int(words[2]), words[3])
        elif words[0] == "burst":
            burst(poster, int(words[1]), words[2])
