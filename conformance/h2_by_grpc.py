"""A tonic service on the server, called by three implementations of gRPC: tonic, grpc-go and
grpcio, which is the one in C++ with Python around it."""

import subprocess
import time
from collections.abc import Iterator

from h2_lab import Lab, host, succeeds, tool
from outcomes import Case, expect

try:
    import grpc
except ImportError:
    grpc = None

SERVICE = "/grpc.testing.TestService/"
BY_TONIC = {
    "unary": "unary", "large-unary": "unary, 300 KB both ways",
    "server-streaming": "server streaming", "client-streaming": "client streaming",
    "both-ways": "both ways, each message once the one before is responded to",
    "a-megabyte-each-way": "both ways, 6 MB each", "empty-stream": "both ways, without a message",
    "status": "a status in place of a response", "odd-status": "a status of any letters",
    "status-behind-messages": "a status behind messages", "metadata": "metadata both ways",
    "unimplemented": "a call that is not there", "deadline": "a deadline", "many": "300 at once",
}
# The cases of grpc's interoperability tests that need no account of a cloud.
BY_GO = ["empty_unary", "large_unary", "client_streaming", "server_streaming", "ping_pong",
         "empty_stream", "timeout_on_sleeping_server", "cancel_after_begin",
         "cancel_after_first_response", "status_code_and_message", "special_status_message",
         "custom_metadata", "unimplemented_method", "unimplemented_service"]


def tonic_version() -> str:
    return "tonic 0.14" if tool("gustnado-conformance") else ""


def by_tonic(lab: Lab, way: str) -> Iterator[Case]:
    for name, meaning in BY_TONIC.items():
        yield meaning, lambda name=name: succeeds(called(lab, way, name))
    yield "calls that are cancelled leave no handler", lambda: cancelled(lab, way)


def called(lab: Lab, way: str, name: str) -> list[str]:
    folder = [str(lab.files)] if way == "TLS" else []
    url = lab.origin(way, "program").replace("localhost", "127.0.0.1")
    return [tool("gustnado-conformance"), "call", url, name, *folder]


def running(lab: Lab) -> int:
    """How many calls the service runs now."""
    url = lab.origin("in clear", "program") + "/running"
    return int(succeeds(["curl", "--silent", "--http2-prior-knowledge", url]))


def wait_until(lab: Lab, count: int, seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while (found := running(lab)) != count:
        expect(time.monotonic() < deadline, f"{found} calls run, not {count}")
        time.sleep(0.02)


def cancelled(lab: Lab, way: str) -> None:
    wait_until(lab, 0)
    client = subprocess.Popen(called(lab, way, "begin"), stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE)
    try:
        wait_until(lab, 3)
        expect(client.stdout.readline() == "cancelled\n", "it has ended before")
        wait_until(lab, 0, 1)
        _, told = client.communicate(timeout=20)
        expect(client.returncode == 0, told)
    finally:
        client.kill()


def go_version() -> str:
    is_there = tool("grpc/client") and tool("gustnado-conformance")
    return "its interop client" if is_there else ""


def by_go(lab: Lab, way: str) -> Iterator[Case]:
    words = ["--use_tls", "--use_test_ca", "--ca_file", lab.file("root.pem"),
             "--server_host_override", "localhost"]
    for name in BY_GO:
        yield name, lambda name=name: succeeds(
            [tool("grpc/client"), "--server_host", host(way),
             "--server_port", str(lab.port(way, "program")),
             *(words if way == "TLS" else ["--use_tls=false"]), "--test_case", name])


def python_version() -> str:
    return f"grpcio {grpc.__version__}" if grpc and tool("gustnado-conformance") else ""


class Service:
    """The service by its methods; messages are bytes, as there is no compiler of .proto files."""

    def __init__(self, lab: Lab, way: str):
        target = f"{host(way)}:{lab.port(way, 'program')}"
        if way == "TLS":
            roots = (lab.files / "root.pem").read_bytes()
            trust = grpc.ssl_channel_credentials(roots)
            self.channel = grpc.secure_channel(
                target, trust, [("grpc.ssl_target_name_override", "localhost")])
        else:
            self.channel = grpc.insecure_channel(target)
        self.empty = self.channel.unary_unary(SERVICE + "EmptyCall")
        self.unary = self.channel.unary_unary(SERVICE + "UnaryCall")
        self.up = self.channel.stream_unary(SERVICE + "StreamingInputCall")
        self.down = self.channel.unary_stream(SERVICE + "StreamingOutputCall")
        self.both = self.channel.stream_stream(SERVICE + "FullDuplexCall")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()


def number(value: int) -> bytes:
    """A number of protobuf."""
    low, high = value & 0x7f, value >> 7
    return bytes([low | 0x80]) + number(high) if high else bytes([low])


def whole(tag: int, value: int) -> bytes:
    return number(tag << 3) + number(value & (1 << 64) - 1)


def part(tag: int, value: bytes) -> bytes:
    return number(tag << 3 | 2) + number(len(value)) + value


def payload(size: int) -> bytes:
    """A field 1 or 3 has one; this is its content."""
    return part(2, bytes(size))


def asking_for(*sizes: int, pause_us: int = 0) -> bytes:
    return b"".join(part(2, whole(1, size) + whole(2, pause_us)) for size in sizes)


def ends_with(code: int, message: str) -> bytes:
    return part(7, whole(1, code) + part(2, message.encode()))


def by_python(lab: Lab, way: str) -> Iterator[Case]:
    every = {
        "unary": unary, "300 KB both ways": large, "client streaming": up, "server streaming": down,
        "both ways, in turn": in_turn, "a status behind messages": behind, "a deadline": late,
        "trailers": trailers, "what is cancelled leaves no handler": dropped,
    }
    for name, check in every.items():
        yield name, lambda check=check: with_service(lab, way, check)


def with_service(lab: Lab, way: str, check) -> None:
    wait_until(lab, 0)
    with Service(lab, way) as service:
        try:
            check(service, lab)
        except grpc.RpcError as error:
            expect(False, f"{error.code()}: {error.details()}")


def unary(service: Service, _: Lab) -> None:
    expect(service.empty(b"", timeout=10) == b"", "another message")


def large(service: Service, _: Lab) -> None:
    asked = whole(2, 314_159) + part(3, payload(271_828))
    expect(service.unary(asked, timeout=10) == part(1, payload(314_159)), "other bytes")


def up(service: Service, _: Lab) -> None:
    sizes = (27_182, 8, 1_828, 45_904)
    answer = service.up((part(1, payload(size)) for size in sizes), timeout=10)
    expect(answer == whole(1, sum(sizes)), f"{answer}")


def down(service: Service, _: Lab) -> None:
    sizes = (31_415, 9, 2_653, 58_979)
    found = list(service.down(asking_for(*sizes), timeout=10))
    expect(found == [part(1, payload(size)) for size in sizes], "other messages")


def in_turn(service: Service, _: Lab) -> None:
    # (A message is asked for when the one before has come.)
    came: list[bytes] = []

    def messages():
        for count in range(10):
            deadline = time.monotonic() + 5
            while len(came) < count and time.monotonic() < deadline:
                time.sleep(0.001)
            yield asking_for(count * 1_000 + 1)

    for message in service.both(messages(), timeout=20):
        came.append(message)
    expect(came == [part(1, payload(count * 1_000 + 1)) for count in range(10)], "other messages")


def behind(service: Service, _: Lab) -> None:
    call, came = service.down(asking_for(5, 6) + ends_with(15, "lost"), timeout=10), []
    try:
        came.extend(call)
    except grpc.RpcError as error:
        expect(error.code() == grpc.StatusCode.DATA_LOSS and error.details() == "lost", f"{error}")
    expect(len(came) == 2, f"{len(came)} messages")


def late(service: Service, lab: Lab) -> None:
    try:
        service.unary(whole(2, -1), timeout=0.3)
    except grpc.RpcError as error:
        expect(error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, f"{error}")
    else:
        expect(False, "it succeeds")
    wait_until(lab, 0, 1)
    expect(service.empty(b"", timeout=10) == b"", "another message")


def trailers(service: Service, _: Lab) -> None:
    fields = (("x-grpc-test-echo-initial", "first"), ("x-grpc-test-echo-trailing-bin", b"\xab\xab"))
    _, call = service.unary.with_call(whole(2, 9), timeout=10, metadata=fields)
    first, last = dict(call.initial_metadata()), dict(call.trailing_metadata())
    found = first.get(fields[0][0]), last.get(fields[1][0])
    expect(found == ("first", b"\xab\xab"), f"{first}, {last}")


def dropped(service: Service, lab: Lab) -> None:
    calls = [service.down(asking_for(*[1] * 1_000, pause_us=10_000)) for _ in range(10)]
    for call in calls:
        next(call)
    wait_until(lab, 10)
    for call in calls:
        call.cancel()
    wait_until(lab, 0, 1)
