"""Applications by ASGI 3."""

import json
import os
import time

import pytest

PROGRAM = """
import asyncio, contextvars, os

mine = contextvars.ContextVar("mine", default="nobody's")
seen = []

async def answer(send, body, status=200, headers=()):
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})

async def body_of(receive):
    whole = b""
    while True:
        message = await receive()
        assert message["type"] == "http.request", message
        whole += message["body"]
        if not message["more_body"]:
            return whole

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        scope["state"]["made"] = "at startup"
        await send({"type": "lifespan.startup.complete"})
        await receive()
        print("the lifespan ends", file=__import__("sys").stderr, flush=True)
        await send({"type": "lifespan.shutdown.complete"})
        return
    path = scope["path"]
    if path == "/scope":
        import json
        text = json.dumps(scope, default=lambda value: value.decode("latin-1")).encode()
        await answer(send, text, headers=[(b"content-type", b"application/json")])
    elif path == "/echo":
        await answer(send, await body_of(receive))
    elif path == "/stream":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(5):
            await send({"type": "http.response.body", "body": b"%d\\n" % number, "more_body": True})
            await asyncio.sleep(0.001)
        await send({"type": "http.response.body"})
    elif path == "/sleep":
        await asyncio.sleep(0.3)
        await answer(send, b"slept")
    elif path == "/task":
        first = asyncio.current_task()
        mine.set(path)
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(0.01) if hasattr(asyncio, "timeout") else Never():
                await asyncio.sleep(10)
        except TimeoutError:
            pass
        same = first is asyncio.current_task() and first in asyncio.all_tasks()
        await answer(send, f"{same} {mine.get()}".encode())
    elif path == "/mine":
        await answer(send, mine.get().encode())
    elif path == "/later":
        receiving = asyncio.create_task(receive())
        message = await receiving
        await answer(send, message["type"].encode())
    elif path == "/fails":
        raise ValueError("what a pity")
    elif path == "/fails-later":
        await asyncio.sleep(0)
        raise ValueError("what a pity, later")
    elif path == "/fails-within":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"some", "more_body": True})
        await asyncio.sleep(0.05)
        raise ValueError("what a pity, within")
    elif path == "/silent":
        pass
    elif path == "/silent-within":
        await send({"type": "http.response.start", "status": 200, "headers": []})
    elif path == "/too-long":
        await answer(send, b"abc", headers=[(b"content-length", b"2")])
    elif path == "/split":
        await answer(send, b"", headers=[(b"x", b"1\\r\\ny: 2")])
    elif path == "/odd":
        await answer(send, b"odd", 299, [(b"x-odd", b"1"), (b"server", b"other"), (b"date", b"x")])
    elif path == "/nothing":
        await answer(send, b"", 204)
    elif path == "/missing":
        await answer(send, b"", 404)
    elif path == "/file":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.pathsend", "path": __file__})
    elif path == "/pipe":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.pathsend", "path": "pipe"})
    elif path == "/wait":
        await body_of(receive)
        message = await receive()
        try:
            await answer(send, b"too late")
        except OSError as error:
            seen.append(f"{message['type']} {type(error).__name__}")
    elif path == "/flood":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            for number in range(1000):
                piece = {"type": "http.response.body", "body": bytes(65536), "more_body": True}
                await send(piece)
                seen[:] = [str(number)]
        except OSError as error:
            seen[:] = ["gone"]
    elif path == "/seen":
        await answer(send, ",".join(seen).encode())
    elif path == "/state":
        await answer(send, scope["state"]["made"].encode())
        scope["state"]["made"] = "spoiled"
    else:
        await answer(send, b"Hello, world!", headers=[(b"content-type", b"text/plain")])

class Never:
    async def __aenter__(self):
        raise TimeoutError
    async def __aexit__(self, *_):
        pass
"""


SCOPE_PROGRAM = """
import json

async def app(scope, receive, send):
    found = {name: scope[name] for name in ("root_path", "path")}
    found["raw_path"] = scope["raw_path"].decode("latin-1")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(found).encode()})
"""


@pytest.fixture
def server(run):
    return run(PROGRAM, "--half-close-timeout", "50ms")


def test_the_scope_says_what_was_asked(server):
    answer = server.get("/scope?a=b%20c", "X-Thing: 1\r\nX-THING: \xe9\r\n")
    assert answer.fields["content-type"] == "application/json"
    scope = json.loads(answer.body)
    assert (scope["type"], scope["http_version"], scope["method"]) == ("http", "1.1", "GET")
    assert (scope["path"], scope["query_string"], scope["raw_path"]) == (
        "/scope", "a=b%20c", "/scope")
    assert ["x-thing", "1"] in scope["headers"] and ["x-thing", "\xe9"] in scope["headers"]
    assert scope["client"][0] == "127.0.0.1" and scope["server"] == ["127.0.0.1", server.port]
    assert scope["asgi"] == {"version": "3.0", "spec_version": "2.3"}
    assert server.get("/nowhere").body == b"Hello, world!"


ROOT_PATHS = [
    # The target that comes, the path that the application finds, and the raw path.
    ("/scope", "/app/scope", "/app/scope"),
    ("/app/scope", "/app/scope", "/app/scope"),
    ("/application/x", "/app/application/x", "/app/application/x"),
    ("/app", "/app", "/app"),
    ("/app%2Fx", "/app/x", "/app%2Fx"),
    ("/%61pp/x%20y", "/app/x y", "/%61pp/x%20y"),
    ("/x/app", "/app/x/app", "/app/x/app"),
]


@pytest.mark.parametrize("root", ["/app", "/app/", "app"])
def test_the_path_has_the_root_path_in_it(run, root):
    """Whether a proxy takes it off or not."""
    server = run(SCOPE_PROGRAM, "--root-path", root)
    scopes = [json.loads(server.get(path).body) for path, *_ in ROOT_PATHS]
    assert [scope["root_path"] for scope in scopes] == ["/app"] * len(ROOT_PATHS)
    assert [(scope["path"], scope["raw_path"]) for scope in scopes] == [
        (path, raw) for _, path, raw in ROOT_PATHS]


def test_a_root_path_may_have_any_letters(run):
    server = run(SCOPE_PROGRAM, "--root-path", "/caf\xe9 1%")
    for target in ("/x?y=1", "/caf%C3%A9%201%25/x"):
        scope = json.loads(server.get(target).body)
        assert (scope["path"], scope["raw_path"]) == ("/caf\xe9 1%/x", "/caf%C3%A9%201%25/x")


def test_mounts_and_files_are_found_below_a_root_path(run):
    pytest.importorskip("starlette")
    server = run(
        """
        import pathlib
        from starlette.applications import Starlette
        from starlette.responses import PlainTextResponse
        from starlette.routing import Mount, Route
        from starlette.staticfiles import StaticFiles

        pathlib.Path("files").mkdir(exist_ok=True)
        pathlib.Path("files/base.css").write_text("css")

        async def page(request):
            return PlainTextResponse(request.url.path)

        app = Starlette(routes=[
            Route("/u", page), Mount("/sub", routes=[Route("/x", page)]),
            Mount("/static", StaticFiles(directory="files")),
        ])
        """,
        "--root-path", "/app",
    )
    for prefix in ("", "/app"):
        found = [server.get(prefix + path) for path in ("/u", "/sub/x", "/static/base.css")]
        assert [answer.status for answer in found] == [200, 200, 200], prefix
        assert [answer.body for answer in found] == [b"/app/u", b"/app/sub/x", b"css"]


def test_bodies_come_and_go_whole(server):
    for length in (0, 7, 100_000, 900_000):
        body = bytes(index * 7 % 251 for index in range(length))
        assert server.post("/echo", body).body == body
    chunked = (b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
               b"Connection: close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    assert server.ask(chunked).endswith(b"\r\n\r\nabcde")


def test_content_is_sent_piece_by_piece(server):
    answer = server.get("/stream")
    assert (answer.body, answer.is_whole) == (b"0\n1\n2\n3\n4\n", True)
    assert answer.fields["transfer-encoding"] == "chunked"


def test_requests_are_tasks_of_their_own(server):
    assert server.get("/task").body == b"True /task"
    assert server.get("/mine").body == b"nobody's"
    assert server.get("/later").body == b"http.request"
    answers, took = server.ask_at_once("/sleep", 10)
    assert all(b"slept" in answer for answer in answers)
    assert took < 2


def test_whoever_fails_is_answered_for(server):
    for path, words in [
        ("/fails", "ValueError: what a pity"),
        ("/fails-later", "ValueError: what a pity, later"),
        ("/silent", "GET /silent: the application has sent no response"),
        ("/silent-within", "GET /silent-within: the application has sent no response"),
        ("/too-long", "Content-Length says 2 bytes, and the content has 3"),
        ("/split", 'the header field "x"'),
    ]:
        assert server.get(path).status == 500, path
        server.wait_for_words(words)
    broken = server.get("/fails-within")
    assert (broken.status, broken.body, broken.is_whole) == (200, b"some", False)
    assert server.get("/").status == 200


def test_statuses_and_heads_are_the_applications(server):
    odd = server.get("/odd")
    assert (odd.status, odd.body, odd.fields["x-odd"]) == (299, b"odd", "1")
    assert (odd.fields["date"], odd.fields["server"]) == ("x", "other")
    assert odd.raw.lower().count(b"\ndate: ") == 1
    nothing = server.get("/nothing")
    assert (nothing.status, nothing.body) == (204, b"") and "content-length" not in nothing.fields
    missing = server.get("/missing")
    assert (missing.status, missing.body) == (404, b"")
    head = server.get("/hello", method="HEAD")
    assert (head.body, head.fields["content-length"]) == (b"", "13")


def test_a_file_is_sent_by_the_engine(server):
    answer = server.get("/file")
    assert answer.body.startswith(b"\nimport asyncio") and answer.is_whole


def test_a_pipe_in_place_of_a_file_holds_nobody(server):
    os.mkfifo(server.folder / "pipe")
    began = time.monotonic()
    assert server.get("/pipe").status == 500
    assert time.monotonic() - began < 5
    server.wait_for_words("expected a regular file to send")
    assert server.get("/").status == 200


def test_a_client_that_goes_is_heard_of(server):
    with server.connect() as link:
        link.sendall(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        time.sleep(0.2)
    deadline = time.monotonic() + 5
    while server.get("/seen").body != b"http.disconnect ClientDisconnected":
        assert time.monotonic() < deadline, server.get("/seen").body
        time.sleep(0.05)


def test_a_client_that_takes_nothing_stops_the_application(server):
    with server.connect() as link:
        link.sendall(b"GET /flood HTTP/1.1\r\nHost: a\r\n\r\n")
        time.sleep(1)
        sent = int(server.get("/seen").body)
        # What the kernel holds, and little more.
        assert sent < 200
    deadline = time.monotonic() + 5
    while server.get("/seen").body != b"gone":
        assert time.monotonic() < deadline, server.get("/seen").body
        time.sleep(0.05)


def test_the_lifespan_spans_it_all(server):
    assert server.get("/state").body == b"at startup"
    assert server.get("/state").body == b"at startup"
    assert server.end() == 0
    assert "the lifespan ends" in server.said()


def test_an_application_that_cannot_start_says_why(run):
    server = run(
        """
        async def app(scope, receive, send):
            await receive()
            await send({"type": "lifespan.startup.failed", "message": "no database"})
        """,
        waits=False,
    )
    assert server.process.wait(10) == 1
    assert "gustnado: the application could not start: no database" in server.said()


def test_a_task_may_be_cancelled_while_it_lets_its_output_leave(run):
    server = run(
        """
        import asyncio
        async def app(scope, receive, send):
            if scope["type"] == "lifespan":
                return
            async def respond():
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"first,", "more_body": True})
            # The loop runs its step, which waits for a turn of the loop once the piece was sent.
            await asyncio.sleep(0)
            task = asyncio.create_task(respond())
            await asyncio.sleep(0)
            task.cancel()
            ended = await asyncio.gather(task, return_exceptions=True)
            names = " ".join(type(end).__name__ for end in ended)
            await send({"type": "http.response.body", "body": names.encode()})
        """
    )
    assert server.get("/").body == b"first,CancelledError"
