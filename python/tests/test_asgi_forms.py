"""What ASGI applications may write: forms of heads and bodies, and their own parts of a scope."""

import json

import pytest

PROGRAM = """
import array, json

def fields_of(kind):
    pairs = [(b"x-a", b"1"), (b"x-b", b"2")]
    return {
        "tuples": pairs,
        "lists": [list(pair) for pair in pairs],
        "tuple-of-lists": tuple(list(pair) for pair in pairs),
        "generator": (iter(pair) for pair in pairs),
        "views": [(bytearray(name), memoryview(value)) for name, value in pairs],
        "triple": [(b"x-a", b"1", b"2")],
        "number": [7],
        "text": [("x-a", "1")],
    }[kind]

BODIES = {
    "bytes": b"body",
    "bytearray": bytearray(b"body"),
    "memoryview": memoryview(b"xbody")[1:],
    "strided": memoryview(b"bxoxdxyx")[::2],
    "array": array.array("B", b"body"),
    "words": array.array("H", b"body"),
    "none": None,
    "text": "body",
}

async def app(scope, receive, send):
    assert scope["type"] == "http"
    _, what, kind = scope["path"].split("/")
    start = {"type": "http.response.start", "status": 200}
    content = {"type": "http.response.body"}
    if what == "fields":
        start["headers"] = fields_of(kind)
    elif what == "body":
        content["body"] = BODIES[kind]
    elif what == "changed":
        changed = bytearray(b"x" * 100_000)
        await send(start)
        await send({"type": "http.response.body", "body": changed, "more_body": True})
        changed[:] = b"y" * 100_000
    elif what == "scope":
        seen = {"asgi": dict(scope["asgi"]), "extensions": list(scope["extensions"])}
        scope["asgi"]["mine"] = scope["extensions"]["mine"] = 1
        content["body"] = json.dumps({**seen, "server": scope["server"]}).encode()
    elif what == "own":
        start["headers"] = [(b"date", b"Thu, 01 Jan 1970 00:00:00 GMT"), (b"Server", b"mine")]
        content["body"] = b"x" * int(kind)
    if what != "changed":
        await send(start)
    await send(content)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    from conftest import serving

    with serving(tmp_path_factory.mktemp("forms"), PROGRAM, "--host", "0.0.0.0") as server:
        yield server


@pytest.mark.parametrize("kind", ["tuples", "lists", "tuple-of-lists", "generator", "views"])
def test_fields_are_any_iterable_of_pairs(server, kind):
    answer = server.get(f"/fields/{kind}")
    assert (answer.status, answer.fields.get("x-a"), answer.fields.get("x-b")) == (200, "1", "2")


@pytest.mark.parametrize("kind, words", [
    ("triple", "expected a name and a value as a header field, found (b'x-a', b'1', b'2')"),
    ("number", "expected a name and a value as a header field, found 7"),
    ("text", "expected bytes as the name of a header field, found <class 'str'>"),
])
def test_what_is_no_pair_of_bytes_is_named(server, kind, words):
    assert server.get(f"/fields/{kind}").status == 500
    server.wait_for_words(words)


@pytest.mark.parametrize("kind", [
    "bytes", "bytearray", "memoryview", "strided", "array", "words", "none", "absent"])
def test_a_body_is_any_object_that_shows_its_bytes(server, kind):
    path = "/absent/x" if kind == "absent" else f"/body/{kind}"
    answer = server.get(path)
    wanted = b"" if kind in ("none", "absent") else b"body"
    assert (answer.status, answer.body, answer.is_whole) == (200, wanted, True)


def test_text_is_no_body(server):
    assert server.get("/body/text").status == 500
    server.wait_for_words("expected bytes as the body of a response, found <class 'str'>")


def test_what_may_change_is_sent_as_it_was(server):
    assert server.get("/changed/x").body == b"x" * 100_000


def test_what_is_written_into_a_scope_is_one_requests(server):
    for _ in range(2):
        seen = json.loads(server.get("/scope/x").body)
        assert seen["asgi"] == {"version": "3.0", "spec_version": "2.3"}
        assert seen["extensions"] == ["http.response.pathsend", "http.response.early_hint"]


def test_the_server_in_a_scope_is_the_connections_address(server):
    assert json.loads(server.get("/scope/x").body)["server"] == ["127.0.0.1", server.port]


def test_a_date_and_a_server_of_the_applications_own_are_kept(server):
    for length in (0, 10, 200_000):
        answer = server.get(f"/own/{length}")
        head = answer.raw.partition(b"\r\n\r\n")[0].lower()
        assert (answer.fields["date"], answer.fields["server"]) == (
            "Thu, 01 Jan 1970 00:00:00 GMT", "mine")
        assert (head.count(b"\ndate:"), head.count(b"\nserver:")) == (1, 1)
        assert len(answer.body) == length


THREADS = """
import asyncio

async def app(scope, receive, send):
    assert scope["type"] == "http"
    loop, found = asyncio.get_running_loop(), []

    def work():
        # As adapters of WSGI do: the call is made here, and awaited on the loop.
        def wait(awaitable):
            return asyncio.run_coroutine_threadsafe(awaitable, loop).result(10)

        receive().close()  # Nobody awaits it, so it takes nothing.
        while True:
            message = wait(receive())
            found.append(message["body"])
            if not message["more_body"]:
                break
        length = str(len(b"".join(found))).encode()
        wait(send({"type": "http.response.start", "status": 200, "headers": []}))
        wait(send({"type": "http.response.body", "body": length}))

    await asyncio.to_thread(work)
"""


def test_other_threads_may_receive_and_send(tmp_path):
    from conftest import serving

    with serving(tmp_path, THREADS) as server:
        for _ in range(20):
            assert server.post("/", b"x" * 300_000).body == b"300000"
