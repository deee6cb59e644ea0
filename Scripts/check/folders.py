#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the folders of NotifyCore use each other in one direction, that its files form no large circle, and that
the largest classes hold no more than they do:

    Scripts/check/folders.py [SCRATCH-FOLDER]

The index that the compiler writes with each debug build says what a file uses; libIndexStore reads it.
"""
import ctypes
import json
import os
import re
import subprocess
import sys
from ctypes import byref, c_bool, c_int, c_size_t, c_uint, c_uint64, c_void_p

# A folder uses those below it. Those in one row don't use each other.
ORDER = ["Center", "Engine Peer", "Receiving Posting", "Lifecycle", "Link Files", "Threads", "Bus"]
# Files that all need each other can only be understood together.
LARGEST_CIRCLE = 7
# How many stored properties a class may have, since whoever changes it has to keep them all in mind.
MOST_PROPERTIES = {"Sources/Library/NotifyCore/Link/BusLink.swift": 15, "Sources/Agent/NotifyAgent/Agent.swift": 28}
# The type that others are declared in, below it. As a part of their names it is not used.
NAMESPACE = "NotifyCenter"
NAMED = ("extension NotifyCenter {", "NotifyCenter.Bus", "NotifyCenter.ConnectionChange")

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))
SOURCES = os.path.realpath("Sources/Library/NotifyCore") + "/"
TOOLCHAIN = json.loads(subprocess.check_output(["swiftc", "-print-target-info"]))["paths"]["runtimeResourcePath"]
LIBRARY = ctypes.CDLL(f"{TOOLCHAIN}/../libIndexStore.so")


class Text(ctypes.Structure):
    _fields_ = [("start", c_void_p), ("length", c_size_t)]


def ask(name, result, *arguments):
    function = getattr(LIBRARY, "indexstore_" + name)
    function.restype = result
    answer = function(*(c_void_p(one) if isinstance(one, int) else one for one in arguments))
    return ctypes.string_at(answer.start, answer.length).decode() if result is Text else answer


def each(name, kind, take, owner, *more):
    """Calls 'take' with each part, which is gone afterwards."""
    callback = ctypes.CFUNCTYPE(c_bool, c_void_p, kind)(lambda _, part: take(part) or True)
    ask(name, c_bool, owner, *more, None, callback)


def read(scratch):
    """The files, where each symbol is defined, and each use: file, line, column, symbol and its name."""
    units, records, homes, uses = [], {}, {}, []
    store = ask("store_create", c_void_p, os.fsencode(f"{scratch}/debug/index/store"), None)
    if not store:
        sys.exit(f"There is no index in {scratch}: build first, with 'swift build'.")
    add = lambda name: units.append(ctypes.string_at(name.start, name.length))
    each("store_units_apply_f", Text, add, store, c_uint(0))
    for unit in units:
        reader = ask("unit_reader_create", c_void_p, store, unit, None)
        file = ask("unit_reader_get_main_file", Text, reader)

        def take_dependency(part):
            if ask("unit_dependency_get_kind", c_int, part) == 2:  # a record
                records[ask("unit_dependency_get_name", Text, part)] = file.removeprefix(SOURCES)

        # The index remembers files that are gone.
        if file.startswith(SOURCES) and os.path.exists(file):
            each("unit_reader_dependencies_apply_f", c_void_p, take_dependency, reader)
    for record, file in records.items():

        def take_occurrence(part):
            symbol, roles = ask("occurrence_get_symbol", c_void_p, part), ask("occurrence_get_roles", c_uint64, part)
            usr, line, column = ask("symbol_get_usr", Text, symbol), c_uint(), c_uint()
            ask("occurrence_get_line_col", None, part, byref(line), byref(column))
            if roles & 3:  # a declaration or definition
                homes[usr] = file
            elif roles & 4:  # a reference
                uses.append((file, line.value, column.value, usr, ask("symbol_get_name", Text, symbol)))

        reader = ask("record_reader_create", c_void_p, store, record.encode(), None)
        each("record_reader_occurrences_apply_f", c_void_p, take_occurrence, reader)
    return sorted(set(records.values())), homes, uses


files, homes, uses = read(sys.argv[1] if len(sys.argv) > 1 else ".build")
lines = {file: open(SOURCES + file, encoding="utf-8").read().split("\n") for file in files}
rows = {folder: row for row, folders in enumerate(ORDER) for folder in folders.split()}
needs, wrong = {file: {file} for file in files}, set()
for file, line, column, usr, name in uses:
    home, text = homes.get(usr, file), lines[file][line - 1]
    if name == NAMESPACE and (text.startswith(NAMED) or text[column - 1 :].startswith(NAMED)):
        continue
    needs[file].add(home)
    own, other = file.split("/")[0], home.split("/")[0]
    if own != other and rows[own] >= rows[other]:
        wrong.add(f"{file}:{line} uses {name}, which is in {home}: {other} is not below {own}")
for middle in files:
    for file in files:
        needs[file] |= needs[middle] if middle in needs[file] else set()
for path, most in MOST_PROPERTIES.items():
    # What is declared within a type or a function is indented further, and what is computed has a brace.
    stored = [line for line in open(path, encoding="utf-8") if re.match(r" {4}([\w()]+ )*(let|var) [^{]*$", line)]
    stored = [line for line in stored if " static " not in line]
    print(f"{path}: {len(stored)} stored properties, of at most {most}")
    if len(stored) > most:
        wrong.add(f"{path} has {len(stored)} stored properties, which is more than {most}")
circle = max(([other for other in needs[file] if file in needs[other]] for file in files), key=len)
print(f"{len(files)} files, of which at most {len(circle)} need each other:", *sorted(circle))
print(*sorted(wrong), sep="\n")
sys.exit(bool(wrong) or len(circle) > LARGEST_CIRCLE)
