# SPDX-License-Identifier: Apache-2.0
# The library from Python, in the ways of Documentation/porting.md; the argument selects one.
import ctypes
import ctypes.util
import os
import socket
import struct
import sys

if sys.argv[1] == "everything":
    notify = ctypes.CDLL(None)
elif sys.argv[1] == "found":
    notify = ctypes.CDLL(ctypes.util.find_library("System"))
else:
    notify = ctypes.CDLL("/usr/lib/libSystem.dylib" if sys.platform == "darwin" else "libnotifybus.so.0")
for function in (notify.notify_post, notify.notify_register_file_descriptor, notify.notify_register_check,
                 notify.notify_check, notify.notify_cancel):
    function.restype = ctypes.c_uint32
notify.notify_is_valid_token.restype = ctypes.c_bool

fd, token, check = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
name = "com.example.café".encode()
assert notify.notify_register_file_descriptor(name, ctypes.byref(fd), 0, ctypes.byref(token)) == 0
assert notify.notify_is_valid_token(token)
assert notify.notify_check(token, ctypes.byref(check)) == 0 and check.value == 1
assert notify.notify_post(name) == 0
heard = socket.ntohl(struct.unpack("=I", os.read(fd.value, 4))[0])
assert heard == token.value, heard
assert notify.notify_check(token, ctypes.byref(check)) == 0 and check.value == 1
assert notify.notify_post(b"\xff") == 1
assert notify.notify_post(b"") == 1
assert notify.notify_post(b"x" * 512) == 1
assert notify.notify_cancel(token) == 0
assert notify.notify_cancel(token) == 2
assert not notify.notify_is_valid_token(token)
print("python", "heard", "it", flush=True)
sys.exit(0)
