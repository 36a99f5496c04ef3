"""What granian's own tests check of ASGI, WSGI and static files, checked on this server: its cases
rewritten, one test for each. (Those of RSGI and TLS have no counterpart here; what those of
WebSocket check is in python/tests/test_websocket.py.)"""

import json

import pytest

ASGI = """
import asyncio, json, pathlib, sniffio

JSON = [[b"content-type", b"application/json"]]
TEXT = [[b"content-type", b"text/plain; charset=utf-8"]]

async def answer(send, body, headers=TEXT):
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})

async def info(scope, receive, send):
    told = {key: scope[key] for key in ("type", "asgi", "http_version", "scheme", "method", "path",
                                        "extensions", "state")}
    told["query_string"] = scope["query_string"].decode()
    told["headers"] = {name.decode(): value.decode() for name, value in scope["headers"]}
    await answer(send, json.dumps(told).encode(), JSON)

async def echo(scope, receive, send):
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    await answer(send, body)

async def file(scope, receive, send):
    path = pathlib.Path("picture.png").resolve()
    await send({"type": "http.response.start", "status": 200, "headers": [
        [b"content-type", b"image/png"], [b"content-length", b"%d" % path.stat().st_size]]})
    await send({"type": "http.response.pathsend", "path": str(path)})

async def fails(scope, receive, send):
    raise ZeroDivisionError

async def wrong_type(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": TEXT})
    try:
        await send({"type": "no.such.message"})
    except Exception as error:
        await send({"type": "http.response.body", "body": str(error).encode()})

async def goes_on(scope, receive, send):
    await answer(send, b"first")
    for more in (True, False):
        try:
            await send({"type": "http.response.body", "body": b"more", "more_body": more})
        except Exception:
            pass

async def library(scope, receive, send):
    await answer(send, sniffio.current_async_library().encode())

async def in_time(scope, receive, send):
    async def at_once():
        return b"in time"
    await answer(send, await asyncio.wait_for(at_once(), None))

async def too_late(scope, receive, send):
    try:
        await asyncio.wait_for(asyncio.sleep(3), 0.05)
    except asyncio.TimeoutError:
        await answer(send, b"too late")

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        scope["state"]["of all"] = "kept"
        await send({"type": "lifespan.startup.complete"})
        return
    name = scope["path"].strip("/")
    await {"echo": echo, "file": file, "fails": fails, "wrong_type": wrong_type,
           "goes_on": goes_on, "library": library, "in_time": in_time,
           "too_late": too_late}.get(name, info)(scope, receive, send)
"""

WSGI = """
import json

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/fails":
        raise ZeroDivisionError
    start_response("200 OK", [("content-type", "application/json")])
    if path == "/echo":
        return [environ["wsgi.input"].read()]
    if path == "/pieces":
        return (b"piece" for _ in range(3))
    told = {key: value for key, value in environ.items() if isinstance(value, str)}
    return [json.dumps({**told, "scheme": environ["wsgi.url_scheme"]}).encode()]
"""

LONG = "".join(f"{number}test".zfill(8) for number in range(5000)).encode()
NO_FRAMEWORK = {"asgi": ASGI, "wsgi": WSGI}


@pytest.fixture
def asgi(run, tmp_path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG" + bytes(91))
    return run(ASGI)


@pytest.fixture
def wsgi(run):
    return run(WSGI)


def test_asgi_scope(asgi):
    answer = asgi.get("/info?test=true", "X-One: 1\r\n")
    assert (answer.status, answer.fields["content-type"]) == (200, "application/json")
    told = json.loads(answer.body)
    assert told["asgi"] == {"version": "3.0", "spec_version": "2.3"}
    assert (told["type"], told["http_version"], told["scheme"]) == ("http", "1.1", "http")
    assert (told["method"], told["path"], told["query_string"]) == ("GET", "/info", "test=true")
    assert (told["headers"]["host"], told["headers"]["x-one"]) == ("a", "1")
    assert told["state"]["of all"] == "kept"
    assert "http.response.pathsend" in told["extensions"]


def test_asgi_path_that_is_no_utf8(asgi):
    answer = asgi.get("/%c0")
    assert (answer.status, json.loads(answer.body)["path"]) == (200, "/\ufffd")


@pytest.mark.parametrize("body", [b"test", LONG], ids=["short", "long"])
def test_asgi_body(asgi, body):
    answer = asgi.post("/echo", body)
    assert (answer.status, answer.body) == (200, body)


def test_asgi_application_fails(asgi):
    assert asgi.get("/fails").status == 500


def test_asgi_messages_of_no_sense(asgi):
    # granian says «Unsupported ASGI message» for the first; what it says is its own.
    wrong = asgi.get("/wrong_type")
    assert (wrong.status, b"no.such.message" in wrong.body) == (200, True)
    on = asgi.get("/goes_on")
    assert (on.status, on.body) == (200, b"first")


def test_asgi_file_by_its_path(asgi):
    answer = asgi.get("/file")
    assert answer.fields["content-type"] == "image/png"
    assert (answer.fields["content-length"], len(answer.body)) == ("95", 95)


def test_asgi_library_and_time_outs(asgi):
    found = [asgi.get(path).body for path in ("/library", "/in_time", "/too_late")]
    assert found == [b"asyncio", b"in time", b"too late"]


def test_wsgi_environment(wsgi):
    answer = wsgi.post("/info?test=true", b"a body", "Test: one\r\nTest: two\r\n")
    assert (answer.status, answer.fields["content-type"]) == (200, "application/json")
    told = json.loads(answer.body)
    assert (told["scheme"], told["REQUEST_METHOD"], told["PATH_INFO"]) == ("http", "POST", "/info")
    assert (told["QUERY_STRING"], told["CONTENT_LENGTH"]) == ("test=true", "6")
    assert (told["HTTP_HOST"], told["HTTP_TEST"]) == ("a", "one,two")


@pytest.mark.parametrize("body", [b"test", LONG], ids=["short", "long"])
def test_wsgi_body(wsgi, body):
    assert wsgi.post("/echo", body).body == body


def test_wsgi_content_in_pieces_and_a_failure(wsgi):
    assert wsgi.get("/pieces").body == b"piece" * 3
    assert wsgi.get("/fails").status == 500


@pytest.fixture(params=NO_FRAMEWORK)
def files(run, tmp_path, request):
    """Folders of files next to an application."""
    for name in ("static/empty", "static/with_index", "other"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("static/media.png", "static/こんにちは.png"):
        (tmp_path / name).write_bytes(b"\x89PNG")
    (tmp_path / "static/with_index/index.html").write_text("an index")
    (tmp_path / "other/cert.pem").write_text("a certificate")
    return run(NO_FRAMEWORK[request.param], "--static", "/static=static", "--static",
               "/other=other")


def test_static_files(files):
    for name in ("media.png", "%E3%81%93%E3%82%93%E3%81%AB%E3%81%A1%E3%81%AF.png"):
        answer = files.get(f"/static/{name}")
        assert (answer.status, answer.fields["content-type"]) == (200, "image/png")
        # granian sends Cache-Control: max-age=86400 unasked; here revalidation is what there is.
        assert "cache-control" not in answer.fields and answer.fields["etag"]
    assert files.get("/other/cert.pem").status == 200
    # (What is not in a folder is the application's.)
    assert files.get("/info").status == 200


def test_static_files_that_are_not_there(files):
    for path in ("/static/missing.png", "/static/empty/", "/static/../site_app.py",
                 "/static/%2e%2e/site_app.py", "/static/..%2fsite_app.py"):
        answer = files.get(path)
        assert b"import json" not in answer.body, path
    assert [files.get(f"/static/{name}").status for name in ("missing.png", "empty/")] == [404, 404]


def test_static_folders(files):
    # granian sends 404 for a folder unless an index is configured; here it is the usual redirect.
    folder = files.get("/static/with_index")
    assert (folder.status, folder.fields["location"]) == (301, "/static/with_index/")
    assert files.get("/static/with_index/").body == b"an index"
