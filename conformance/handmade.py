"""Hellos, records and alerts of TLS made by hand: what no library would send, or show."""

import os
import socket
import struct

from outcomes import Unmet
from served import HOST

ALERT, HANDSHAKE, CONTENT = 21, 22, 23
SERVER_HELLO = 2
# (RFC 8446, 4.1.3: the random of a hello that asks for another.)
RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
SUITES_13 = [0x1301, 0x1302, 0x1303]
SUITES_12 = [0xC02B, 0xC02C, 0xCCA9, 0xC02F, 0xC030, 0xCCA8]
SCHEMES = [0x0403, 0x0503, 0x0603, 0x0807, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601]
GROUPS = [0x001D, 0x0017, 0x0018]
ALERTS = {0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac",
          22: "record_overflow", 40: "handshake_failure", 47: "illegal_parameter",
          50: "decode_error", 51: "decrypt_error", 70: "protocol_version",
          80: "internal_error", 86: "inappropriate_fallback", 109: "missing_extension",
          112: "unrecognized_name", 120: "no_application_protocol"}


def listed(values: list[int], width: str = "!H", length: str = "!H") -> bytes:
    content = b"".join(struct.pack(width, value) for value in values)
    return struct.pack(length, len(content)) + content


def extension(number: int, content: bytes) -> bytes:
    return struct.pack("!HH", number, len(content)) + content


def named(name: str) -> bytes:
    inner = b"\0" + struct.pack("!H", len(name)) + name.encode()
    return extension(0, struct.pack("!H", len(inner)) + inner)


def record(kind: int, content: bytes, version: int = 0x0301) -> bytes:
    return struct.pack("!BHH", kind, version, len(content)) + content


def hello(suites: list[int], version: int = 0x0303, versions: list[int] | None = None,
          groups: list[int] | None = None, name: str = "", more: bytes = b"",
          compressions: bytes = b"\0", without: tuple[str, ...] = ()) -> bytes:
    """The message, without a record. `versions`: those of TLS 1.3's extension, if it has that."""
    extensions = named(name) if name else b""
    extensions += extension(10, listed(groups or GROUPS))
    if "schemes" not in without:
        extensions += extension(13, listed(SCHEMES))
    extensions += extension(11, b"\1\0") + extension(0xFF01, b"\0") + extension(23, b"")
    if versions:
        extensions += extension(43, listed(versions, length="!B"))
        # No share: the server chooses a group and asks for one.
        extensions += extension(51, b"\0\0") + extension(45, b"\1\1")
    extensions += more
    content = struct.pack("!H", version) + os.urandom(32) + b"\0" + listed(suites)
    content += bytes([len(compressions)]) + compressions
    if "extensions" not in without:
        content += struct.pack("!H", len(extensions)) + extensions
    return b"\1" + struct.pack("!I", len(content))[1:] + content


class Plain:
    """A connection without a library of TLS."""

    def __init__(self, port: int, seconds: float = 5):
        self.socket = socket.create_connection((HOST, port), timeout=seconds)
        self.received = b""

    def __enter__(self) -> "Plain":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, content: bytes) -> None:
        self.socket.sendall(content)

    def _need(self, count: int) -> bool:
        while len(self.received) < count:
            try:
                more = self.socket.recv(65536)
            except ConnectionError:
                return False
            if not more:
                return False
            self.received += more
        return True

    def record(self) -> tuple[int, bytes] | None:
        """The next one; nothing at the end of the connection."""
        if not self._need(5):
            return None
        kind, _, length = struct.unpack("!BHH", self.received[:5])
        if not self._need(5 + length):
            return None
        content, self.received = self.received[5:5 + length], self.received[5 + length:]
        return kind, content

    def alert(self) -> str:
        """The name of the alert that comes next, behind whatever else; `end` without one."""
        while found := self.record():
            if found[0] == ALERT and len(found[1]) == 2:
                return ALERTS.get(found[1][1], str(found[1][1]))
        return "end"


class Chosen:
    """What a server has chosen by its hello."""

    def __init__(self, content: bytes):
        if content[0] != SERVER_HELLO:
            raise Unmet(f"no hello, but a message of type {content[0]}")
        self.version = struct.unpack("!H", content[4:6])[0]
        self.random = content[6:38]
        self.is_retry = self.random == RETRY
        at = 39 + content[38]
        self.suite = struct.unpack("!H", content[at:at + 2])[0]
        self.compression = content[at + 2]
        self.extensions: dict[int, bytes] = {}
        at += 5
        end = 4 + int.from_bytes(content[1:4], "big")
        while at < end:
            number, length = struct.unpack("!HH", content[at:at + 4])
            self.extensions[number] = content[at + 4:at + 4 + length]
            at += 4 + length
        if 43 in self.extensions:
            self.version = struct.unpack("!H", self.extensions[43])[0]


def offer(port: int, message: bytes, version: int = 0x0301) -> "Chosen | str":
    """What the server chooses for a hello, or the name of its alert."""
    parts = [message[at:at + 16384] for at in range(0, len(message), 16384)]
    with Plain(port) as link:
        link.send(b"".join(record(HANDSHAKE, part, version) for part in parts))
        found = link.record()
        if not found:
            return "end"
        if found[0] == HANDSHAKE:
            return Chosen(found[1])
        return ALERTS.get(found[1][1], str(found[1][1])) if found[0] == ALERT else "no TLS"
