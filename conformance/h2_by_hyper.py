"""python-hyper's `h2` as a client that keeps the rules, at their edges."""

import signal
import time
from collections.abc import Iterator

from h2_lab import Lab
from outcomes import Case, expect
from served import MEGABYTE, PAGE

try:
    import h2
    from h2.settings import SettingCodes
    from h2_link import (
        ACK,
        DATA,
        END_HEADERS,
        END_STREAM,
        GOAWAY,
        HEADERS,
        PING,
        PRIORITY,
        PRIORITY_UPDATE,
        UNKNOWN,
        Link,
        Raw,
        frame,
    )
except ImportError:
    h2 = None


def version() -> str:
    return f"h2 {h2.__version__}" if h2 else ""


def cases(lab: Lab, way: str) -> Iterator[Case]:
    every = {
        "pages one after the other": pages, "HEAD": head, "1 MB up as windows allow": up,
        "1 MB both ways": echo, "100 streams at once": at_once,
        "more streams than it may have are refused": too_many,
        "a window of one byte": tiny_window, "a window that shrinks below 0": shrunk,
        "windows of streams that differ": held, "no dynamic table, then a large one": tables,
        "larger frames, where they are allowed": large_frames, "padding": padded,
        "trailers both ways": trailers, "early hints before the response": hints,
        "100 is sent to who waits for it": continued,
        "PING is answered with its bytes": pinged,
        "unknown frames, settings and priorities are passed over": unknown,
        "PRIORITY_UPDATE puts the urgent one first": urgent,
        "a stream that is reset ends alone": reset,
        "GOAWAY of the client: what it asked for is answered": left,
        "a response before the end of an upload": early,
        "the server's GOAWAY comes twice, and loses nothing": drained,
    }
    for name, check in every.items():
        yield name, lambda check=check: check(lab, way)


def is_page(answer) -> None:
    expect((answer.status, answer.body) == ("200", PAGE.encode()), f"{answer}")


def pages(lab: Lab, way: str) -> None:
    with Link(lab, way) as link:
        for _ in range(50):
            is_page(link.ask("/"))


def head(lab: Lab, way: str) -> None:
    with Link(lab, way) as link:
        answer = link.ask("/1m.bin", method="HEAD")
        expect((answer.status, answer.body) == ("200", b""), f"{answer}")
        expect(answer.fields["content-length"] == str(len(MEGABYTE)), f"{answer.fields}")


def up(lab: Lab, way: str) -> None:
    with Link(lab, way) as link:
        answer = link.post("/taken", MEGABYTE, ("content-length", str(len(MEGABYTE))))
        expect(answer.body == b"taken\n", f"{answer}")


def echo(lab: Lab, way: str) -> None:
    with Link(lab, way, "program") as link:
        answer = link.post("/echo", MEGABYTE)
        expect(answer.body == MEGABYTE, f"{len(answer.body)} bytes")


def at_once(lab: Lab, way: str) -> None:
    with Link(lab, way) as link:
        link.until(lambda: link.h2.remote_settings.max_concurrent_streams < 1_000)
        streams = [link.request("GET", "/1m.bin" if count % 10 == 0 else "/")
                   for count in range(100)]
        for count, stream in enumerate(streams):
            wanted = MEGABYTE if count % 10 == 0 else PAGE.encode()
            expect(link.answer(stream).body == wanted, f"stream {stream}: other bytes")


def too_many(lab: Lab, way: str) -> None:
    with Link(lab, way, "program") as link:
        link.until(lambda: link.h2.remote_settings.max_concurrent_streams < 1_000)
        most = link.h2.remote_settings.max_concurrent_streams
        link.h2.remote_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = 2 * most
        link.h2.remote_settings.acknowledge()
        streams = [link.request("GET", "/slow") for _ in range(most + 10)]
        answers = [link.answer(stream) for stream in streams]
        found = [answer.reset or answer.status for answer in answers]
        expect(found == ["200"] * most + ["REFUSED_STREAM"] * 10, f"{found}")


def tiny_window(lab: Lab, way: str) -> None:
    with Link(lab, way, settings={SettingCodes.INITIAL_WINDOW_SIZE: 1}) as link:
        is_page(link.ask("/"))


def shrunk(lab: Lab, way: str) -> None:
    with Link(lab, way, gives_window=False) as link:
        link.h2.increment_flow_control_window(2 * len(MEGABYTE))
        stream = link.request("GET", "/1m.bin")
        answer = link.answers[stream]
        link.until(lambda: len(answer.body) == 65_535)
        link.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1_000})
        link.send()
        # 64,535 bytes bring it back to 0.
        link.h2.increment_flow_control_window(64_535 + 500, stream)
        link.send()
        link.until(lambda: len(answer.body) >= 66_035)
        link.h2.ping(b"12345678")
        link.send()
        link.until(lambda: link.pings)
        expect(len(answer.body) == 66_035, f"{len(answer.body)} bytes")
        link.h2.increment_flow_control_window(len(MEGABYTE), stream)
        link.send()
        expect(link.answer(stream).body == MEGABYTE, "other bytes")


def held(lab: Lab, way: str) -> None:
    with Link(lab, way, gives_window=False) as link:
        link.h2.increment_flow_control_window(4 * len(MEGABYTE))
        first, second = link.request("GET", "/1m.bin"), link.request("GET", "/1m.bin")
        for stream in (first, second):
            link.until(lambda stream=stream: len(link.answers[stream].body) == 65_535)
        link.h2.increment_flow_control_window(len(MEGABYTE), second)
        link.send()
        expect(link.answer(second).body == MEGABYTE, "other bytes")
        expect(len(link.answers[first].body) == 65_535, "the first one has gone on")
        link.h2.increment_flow_control_window(len(MEGABYTE), first)
        link.send()
        expect(link.answer(first).body == MEGABYTE, "other bytes")


def tables(lab: Lab, way: str) -> None:
    with Link(lab, way) as link:
        for size in (0, 65_536, 100, 4_096):
            link.h2.update_settings({SettingCodes.HEADER_TABLE_SIZE: size})
            link.send()
            for _ in range(5):
                is_page(link.ask("/", ("x-kept", "the same"), ("x-size", str(size))))


def large_frames(lab: Lab, way: str) -> None:
    with Link(lab, way, settings={SettingCodes.MAX_FRAME_SIZE: 1 << 20,
                                  SettingCodes.INITIAL_WINDOW_SIZE: 1 << 22}) as link:
        link.h2.increment_flow_control_window(1 << 22)
        expect(link.ask("/1m.bin").body == MEGABYTE, "other bytes")


def padded(lab: Lab, way: str) -> None:
    with Link(lab, way, "program") as link:
        for length in (0, 1, 255):
            answer = link.post("/echo", MEGABYTE[:200_000], pad_length=length)
            expect(answer.body == MEGABYTE[:200_000], f"{len(answer.body)} bytes")


def trailers(lab: Lab, way: str) -> None:
    with Link(lab, way, "program") as link:
        stream = link.request("POST", "/trailers", ("trailer", "x-of-client"), ends=False)
        link.upload(stream, b"body", ends=False)
        link.h2.send_headers(stream, [("x-of-client", "1")], end_stream=True)
        link.send()
        answer = link.answer(stream)
        expect(answer.body == b"body" and answer.trailers == {"x-sum": "42"}, f"{answer}")


def hints(lab: Lab, way: str) -> None:
    with Link(lab, way, "program") as link:
        answer = link.ask("/hints")
        expect([status for status, _ in answer.interim] == ["103"], f"{answer}")
        expect("preload" in answer.interim[0][1]["link"], f"{answer}")
        expect(answer.status == "200", f"{answer}")


def continued(lab: Lab, way: str) -> None:
    with Link(lab, way, "program") as link:
        stream = link.request("POST", "/echo", ("expect", "100-continue"), ends=False)
        answer = link.answers[stream]
        link.until(lambda: answer.interim)
        link.upload(stream, b"here")
        expect(link.answer(stream).body == b"here", f"{answer}")
        stream = link.request("POST", "/refused", ("expect", "100-continue"), ends=False)
        answer = link.answer(stream)
        expect((answer.status, answer.interim) == ("403", []), f"{answer}")


def pinged(lab: Lab, way: str) -> None:
    with Link(lab, way) as link:
        words = [b"%08d" % count for count in range(20)]
        for word in words:
            link.h2.ping(word)
        link.send()
        link.until(lambda: len(link.pings) == 20)
        expect(link.pings == words, f"{link.pings}")


def unknown(lab: Lab, way: str) -> None:
    with Link(lab, way) as link:
        stream = link.h2.get_next_available_stream_id()
        number = stream.to_bytes(4, "big")
        link.frames(frame(UNKNOWN, 0, b"unknown", 0xff), frame(UNKNOWN, stream, b"to come", 0xff),
                    frame(PRIORITY, stream, b"\x80\0\0\0\3"),
                    frame(PRIORITY_UPDATE, 0, number + b"u=zz, ?!"))
        link.h2.update_settings({0xff: 7})
        is_page(link.ask("/"))


def urgent(lab: Lab, way: str) -> None:
    with Link(lab, way, gives_window=False) as link:
        first = link.request("GET", "/1m.bin", ("priority", "u=7"))
        second = link.request("GET", "/1m.bin", ("priority", "u=7"))
        link.until(lambda: len(link.answers[first].body) == 65_535)
        for stream in (first, second):
            link.h2.increment_flow_control_window(len(MEGABYTE), stream)
        link.send()
        link.frames(frame(PRIORITY_UPDATE, 0, second.to_bytes(4, "big") + b"u=0"))
        link.h2.increment_flow_control_window(200_000)
        link.send()
        link.until(lambda: sum(len(one.body) for one in link.answers.values()) == 265_535)
        found = {stream: len(link.answers[stream].body) for stream in (first, second)}
        expect(found[second] == 200_000, f"{found}")


def reset(lab: Lab, way: str) -> None:
    with Link(lab, way) as link:
        first, second = link.request("GET", "/1m.bin"), link.request("GET", "/1m.bin")
        link.until(lambda: link.answers[first].body)
        link.h2.reset_stream(first, 8)
        link.send()
        expect(link.answer(second).body == MEGABYTE, "other bytes")
        expect(not link.answers[first].is_whole, "it goes on")


def left(lab: Lab, way: str) -> None:
    with Link(lab, way, "program") as link:
        stream = link.request("GET", "/slow")
        # (By hand: h2 takes nothing more once it has sent one itself.)
        link.frames(frame(GOAWAY, 0, bytes(8)))
        expect(link.answer(stream).body == b"slow", f"{link.answers[stream]}")
        # Whoever has said so is gone: the server closes.
        link.until_closed()


def early(lab: Lab, way: str) -> None:
    with Link(lab, way, "program") as link:
        stream = link.request("POST", "/refused", ends=False)
        answer = link.answers[stream]
        link.until(lambda: answer.is_whole)
        # What does not come is not waited for.
        link.until(lambda: answer.reset)
        expect((answer.status, answer.reset) == ("403", "NO_ERROR"), f"{answer}")
        expect(link.ask("/slow").body == b"slow", "the connection does not go on")


def drained(lab: Lab, way: str) -> None:
    # (By hand: for h2 a connection is over with the first GOAWAY.)
    with Raw(lab, way, "program") as raw:
        streams = range(1, 41, 2)
        raw.frames(*(frame(HEADERS, stream, raw.encode(request("/slow")), END_HEADERS | END_STREAM)
                     for stream in streams), frame(PING, 0, b"all sent"))
        while next(raw.read())[0] != PING:
            pass
        server = lab.servers.pop("program")
        server.process.send_signal(signal.SIGTERM)
        lasts, ended, answered = [], set(), 0.0
        for kind, flags, stream, payload in raw.read():
            if kind == PING and not flags:
                raw.frames(frame(PING, 0, payload, ACK))
                answered = time.monotonic()
            elif kind == GOAWAY:
                lasts.append(int.from_bytes(payload[:4], "big"))
                took = time.monotonic() - answered
                expect(len(lasts) == 1 or took < 0.15, f"the second came {took:.3f} s after PING")
            elif flags & END_STREAM and kind in (DATA, HEADERS):
                ended.add(stream)
        expect(lasts == [2**31 - 1, streams[-1]], f"{lasts}")
        expect(ended == set(streams), f"{len(ended)} responses of {len(streams)}")
        expect(server.process.wait(10) == 0, "it ends with an error")


def request(path: str) -> list[tuple[str, str]]:
    return [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
