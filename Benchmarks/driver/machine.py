# SPDX-License-Identifier: Apache-2.0
"""On what it was measured."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

# How to ask each for its version. Programs listed beside a library are linked with it.
QUESTIONS = {
    "dbus-daemon": ["dbus-daemon", "--version"],
    "dbus-broker": ["dbus-broker", "--version"],
    "Swift": ["swift", "--version"],
    "libdbus": ["pkg-config", "--modversion", "dbus-1"],
    "sd-bus": ["pkg-config", "--modversion", "libsystemd"],
    "GDBus": ["pkg-config", "--modversion", "gio-2.0"],
    "python3-dbus": ["/usr/bin/python3", "-c", "import dbus; print(dbus.__version__)"],
    "hiredis": ["pkg-config", "--modversion", "hiredis"],
    "Redis": ["redis-server", "--version"],
    "libmosquitto": ["pkg-config", "--modversion", "libmosquitto"],
    "Mosquitto": ["mosquitto", "-h"],
    "SQLite": ["pkg-config", "--modversion", "sqlite3"],
    "valgrind": ["valgrind", "--version"],
}


def describe():
    """The machine, as a dictionary of text and numbers."""
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "processor": model[1] if model else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", "Linux"),
        "load at the start": round(os.getloadavg()[0], 2),
        "versions": {name: version for name, question in QUESTIONS.items() if (version := ask(question))},
    }


def ask(question):
    """The first version number in what a command says."""
    if not shutil.which(question[0]):
        return None
    try:
        result = subprocess.run(question, capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\d+(?:\.\d+)*", result.stdout)
    return found[0] if found else None


def lines(machine):
    """The same for people."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    first = f"{machine['cores']} cores, {machine['processor']}; Linux {machine['kernel']}, {machine['system']}"
    return ["", first, versions, f"The load was {machine['load at the start']} when it began."]
