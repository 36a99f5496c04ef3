"""What the server offers, asked for by hellos made by hand, over all numbers that there are."""

import struct
from collections.abc import Iterator

import handmade
from handmade import CONTENT, HANDSHAKE, SUITES_12, SUITES_13, Chosen, extension, hello, listed
from outcomes import Case, expect
from served import Lab

NAME = "hellos by hand"
FALLBACK, RENEGOTIATION = 0x5600, 0x00FF
ALL_GROUPS = [*range(1, 0x0200), *range(0x0100, 0x0106), *range(0x0200, 0x0210), 0x11EB, 0x11EC,
              0x11ED, 0x6399, 0xFE31]
# By certificate: what may be chosen of the suites of TLS 1.2.
ECDSA, RSA = [0xC02B, 0xC02C, 0xCCA9], [0xC02F, 0xC030, 0xCCA8]


def version() -> str:
    return "the suite's own"


def suites_of(port: int, name: str, versions: list[int] | None) -> list[int]:
    """Every suite that is chosen, in the order in which it is, among all 65,536."""
    found: list[int] = []
    every = [number for number in range(65536) if number not in (FALLBACK, RENEGOTIATION)]
    for begin in range(0, len(every), 4096):
        left = every[begin:begin + 4096]
        while isinstance(chosen := handmade.offer(
                port, hello(left, versions=versions, name=name)), Chosen):
            found.append(chosen.suite)
            left.remove(chosen.suite)
        expect(chosen in ("handshake_failure", "illegal_parameter"), f"another alert: {chosen}")
    return found


def only(lab: Lab, name: str, versions: list[int] | None, wanted: list[int]) -> None:
    found = suites_of(lab.server("sites").port, name, versions)
    expect(sorted(found) == sorted(wanted), f"it has {[hex(suite) for suite in found]}")


def chosen(lab: Lab, message: bytes, kind: str = "sites") -> Chosen:
    found = handmade.offer(lab.server(kind).port, message)
    expect(isinstance(found, Chosen), f"it is refused: {found}")
    return found


def refused(lab: Lab, alert: str, message: bytes, kind: str = "sites") -> None:
    found = handmade.offer(lab.server(kind).port, message)
    expect(found == alert, f"it is {found}, not {alert}")


def cases(lab: Lab) -> Iterator[Case]:
    yield "all suites of TLS 1.3", lambda: only(lab, "localhost", [0x0304], SUITES_13)
    yield "all suites of TLS 1.2, a certificate of ECDSA", lambda: only(
        lab, "localhost", None, ECDSA)
    yield "all suites of TLS 1.2, a certificate of RSA", lambda: only(lab, "rsa.test", None, RSA)
    yield "all groups", lambda: groups(lab)
    yield "TLS 1.3 before 1.2", lambda: expect(
        chosen(lab, hello(SUITES_13 + SUITES_12, versions=[0x0303, 0x0304])).version == 0x0304,
        "another version")
    for number, told in ((0x0300, "SSL 3.0"), (0x0301, "TLS 1.0"), (0x0302, "TLS 1.1")):
        yield f"{told} is refused", lambda number=number: refused(
            lab, "protocol_version", hello(SUITES_12, version=number))
        yield f"{told} by the extension of TLS 1.3 is refused", lambda number=number: refused(
            lab, "protocol_version", hello(SUITES_12, versions=[number]))
    yield "a version to come gets TLS 1.2", lambda: expect(
        chosen(lab, hello(SUITES_12, version=0x0305)).version == 0x0303, "another version")
    yield "unknown versions beside TLS 1.3 are passed over", lambda: expect(
        chosen(lab, hello(SUITES_13, versions=[0x7A7A, 0x0305, 0x0304])).version == 0x0304,
        "another version")
    yield "TLS 1.2 marks its random where 1.3 is there", lambda: expect(
        chosen(lab, hello(SUITES_12)).random.endswith(b"DOWNGRD\1"), "no mark")
    yield "a fallback to TLS 1.2 is refused", lambda: refused(
        lab, "inappropriate_fallback", hello([FALLBACK, *SUITES_12]))
    yield "compression is refused, or not chosen", lambda: expect(
        chosen(lab, hello(SUITES_12, compressions=b"\1\0")).compression == 0, "it is chosen")
    yield "secure renegotiation and the extended master secret are agreed on", lambda: expect(
        {0xFF01, 23} <= set(chosen(lab, hello(SUITES_12)).extensions), "one is missing")
    yield "a heartbeat is not agreed on", lambda: expect(
        15 not in chosen(lab, hello(SUITES_12, more=extension(15, b"\1"))).extensions, "it is")
    yield "records of another length are not agreed on", lambda: expect(
        not {1, 28} & set(chosen(lab, hello(
            SUITES_12, more=extension(1, b"\1") + extension(28, b"\2\0"))).extensions), "they are")
    yield "AES-128 is taken unless ChaCha20 comes first, of TLS 1.3", lambda: order(
        lab, SUITES_13, [0x0304])
    yield "AES-128 is taken unless ChaCha20 comes first, of TLS 1.2", lambda: order(
        lab, ECDSA, None)
    yield "numbers that say nothing (GREASE) are passed over", lambda: expect(
        chosen(lab, hello([0x0A0A, *SUITES_13], versions=[0x1A1A, 0x0304],
                          groups=[0x2A2A, *handmade.GROUPS],
                          more=extension(0x3A3A, b"\0"))).suite in SUITES_13, "another suite")
    yield "no extension at all is refused", lambda: refused(
        lab, "handshake_failure", hello(SUITES_12, without=("extensions",)))
    yield "an extension twice is refused", lambda: expect(
        handmade.offer(lab.server("sites").port, hello(SUITES_12, more=extension(23, b"")))
        in ("illegal_parameter", "decode_error"), "it is taken, or another alert")
    yield "strict names: unrecognized_name", lambda: refused(
        lab, "unrecognized_name", hello(SUITES_12, name="unknown.test"), "strict")
    yield "a first record of more than 2^14 bytes: record_overflow", lambda: overlong(lab)
    yield "a first record of content: unexpected_message", lambda: first(lab, CONTENT)
    yield "a message that is no hello: unexpected_message", lambda: refused(
        lab, "unexpected_message", b"\xd5" + hello(SUITES_12)[1:])
    yield "a ticket that is none: TLS 1.2 begins anew", lambda: chosen(
        lab, hello(SUITES_12, more=extension(35, b"x" * 200)))


def groups(lab: Lab) -> None:
    """Without a share the server asks for one of the group that it chooses."""
    found = []
    for begin in range(0, len(ALL_GROUPS), 600):
        left = ALL_GROUPS[begin:begin + 600]
        while isinstance(picked := handmade.offer(lab.server("sites").port, hello(
                SUITES_13, versions=[0x0304], groups=left)), Chosen):
            expect(picked.is_retry, "it asks for no share")
            group = struct.unpack("!H", picked.extensions[51])[0]
            found.append(group)
            left = [number for number in left if number != group]
    expect(sorted(found) == [0x0017, 0x0018, 0x001D, 0x11EC], f"{[hex(one) for one in found]}")


def order(lab: Lab, suites: list[int], versions: list[int] | None) -> None:
    """All suites are good ones: the fastest counts, and ChaCha20 where a client has no AES."""
    shorter, longer, chacha = suites
    for offered, expected in (([shorter, longer, chacha], shorter),
                              ([longer, shorter, chacha], shorter),
                              ([longer, chacha], longer), ([chacha, longer, shorter], chacha)):
        found = chosen(lab, hello(offered, versions=versions, name="localhost")).suite
        expect(found == expected, f"{found:#x} of {[hex(one) for one in offered]}")


def overlong(lab: Lab) -> None:
    with handmade.Plain(lab.server("sites").port) as link:
        link.send(struct.pack("!BHH", HANDSHAKE, 0x0301, 16385) + bytes(16385))
        expect((alert := link.alert()) == "record_overflow", f"it is {alert}")


def first(lab: Lab, kind: int) -> None:
    with handmade.Plain(lab.server("sites").port) as link:
        link.send(handmade.record(kind, listed(SUITES_12)))
        expect((alert := link.alert()) == "unexpected_message", f"it is {alert}")
