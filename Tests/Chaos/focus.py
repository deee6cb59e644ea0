# SPDX-License-Identifier: Apache-2.0
"""A stand-in for sway, which says which window has the focus: see sway-ipc(7)."""

import json
import os
import socket
import struct
import threading

SUBSCRIBE, TREE, WINDOW = 2, 4, 0x80000003
HEADER = struct.Struct("=6sII")


class Focus:
    def __init__(self, path):
        self.path, self.lock, self.talks, self.window = str(path), threading.Lock(), [], None
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        threading.Thread(target=self.accept, daemon=True).start()

    def move(self, process, application):
        """A window of this process has the focus from now on."""
        with self.lock:
            self.window = {"id": 7, "type": "con", "focused": True, "app_id": application, "pid": process}
            for talk in [*self.talks]:
                self.send(talk, WINDOW, {"change": "focus", "container": self.window})

    def accept(self):
        while True:
            talk = self.listener.accept()[0]
            threading.Thread(target=self.serve, args=(talk,), daemon=True).start()

    def serve(self, talk):
        received = b""
        while more := self.receive(talk):
            received += more
            while len(received) >= HEADER.size:
                _, size, kind = HEADER.unpack_from(received)
                if len(received) < HEADER.size + size:
                    break
                received = received[HEADER.size + size :]
                with self.lock:
                    if kind == SUBSCRIBE:
                        self.talks.append(talk)
                        self.send(talk, kind, {"success": True})
                    elif kind == TREE:
                        self.send(talk, kind, {"id": 1, "type": "root", "nodes": [self.window or self.desktop()]})
        with self.lock:
            self.talks = [other for other in self.talks if other is not talk]
        talk.close()

    @staticmethod
    def desktop():
        """Nothing has the focus: an empty workspace."""
        return {"id": 4, "type": "workspace", "focused": True, "nodes": []}

    def send(self, talk, kind, payload):
        data = json.dumps(payload).encode()
        try:
            talk.sendall(HEADER.pack(b"i3-ipc", len(data), kind) + data)
        except OSError:
            pass

    @staticmethod
    def receive(talk):
        try:
            return talk.recv(4096)
        except OSError:
            return b""  # An agent that was killed.

    def end(self):
        self.listener.close()
        os.unlink(self.path)
