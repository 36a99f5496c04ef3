"""Applications by WSGI."""

import time

import pytest

PROGRAM = """
import sys, time
from wsgiref.validate import validator

closed = []

class Pieces:
    def __init__(self, *pieces):
        self.pieces = list(pieces)
    def __iter__(self):
        return self
    def __next__(self):
        if not self.pieces:
            raise StopIteration
        piece = self.pieces.pop(0)
        if isinstance(piece, Exception):
            raise piece
        return piece
    def close(self):
        closed.append("closed")

def lazy(start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    for number in range(3):
        yield b"%d\\n" % number

def app(environ, start_response):
    path = environ["PATH_INFO"]
    text = [("Content-Type", "text/plain")]
    if path == "/environ":
        start_response("200 OK", text)
        keys = sorted(key for key in environ if key.isupper())
        return ["\\n".join(f"{key}={environ[key]!r}" for key in keys).encode()]
    if path == "/echo":
        body = environ["wsgi.input"].read()
        start_response("200 Fine", [*text, ("Content-Length", str(len(body)))])
        return [body]
    if path == "/lazily":
        start_response("201 Lazy", text)
        return [b"at last"]
    if path == "/pieces":
        start_response("200 OK", text)
        return Pieces(b"a", b"", b"b", b"c")
    if path == "/lazy":
        return lazy(start_response)
    if path == "/written":
        write = start_response("200 OK", text)
        write(b"first ")
        return [b"second"]
    if path == "/fails":
        raise ValueError("what a pity")
    if path == "/fails-within":
        start_response("200 OK", text)
        return Pieces(b"some", b"more", ValueError("what a pity, within"))
    if path == "/fails-and-says":
        try:
            start_response("200 OK", text)
            raise ValueError
        except ValueError:
            start_response("500 Sorry", text, sys.exc_info())
            return [b"sorry"]
    if path == "/silent":
        return [b"never"]
    if path == "/text":
        start_response("200 OK", text)
        return ["text"]
    if path == "/split":
        start_response("200 OK", [("X", "1\\r\\nY: 2")])
        return []
    if path == "/file":
        start_response("200 OK", text)
        file = open(__file__, "rb")
        file.seek(1)
        return environ["wsgi.file_wrapper"](file)
    if path == "/pipe":
        import os
        os.path.exists("pipe") or os.mkfifo("pipe")
        read = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
        write = os.open("pipe", os.O_WRONLY)
        os.write(write, b"from a pipe")
        os.close(write)
        start_response("200 OK", text)
        file = open(read, "rb")
        file.tell = lambda: 0
        return environ["wsgi.file_wrapper"](file)
    if path == "/not-a-file":
        import io
        start_response("200 OK", text)
        return environ["wsgi.file_wrapper"](io.BytesIO(b"in memory"))
    if path == "/sleep":
        time.sleep(0.3)
        start_response("200 OK", text)
        return [b"slept"]
    if path == "/closed":
        start_response("200 OK", text)
        return [str(len(closed)).encode()]
    if path == "/valid":
        return validator(lambda environ, start: start("200 OK", text) and [b"valid"])(
            environ, start_response)
    start_response("200 OK", text)
    return [b"Hello, world!"]
"""


@pytest.fixture(params=["inline", "threads"])
def server(run, request):
    options = ["--threads", "4"] if request.param == "threads" else []
    return run(PROGRAM, *options)


def test_the_environment_says_what_was_asked(server):
    fields = "X-Thing: 1\r\nx-thing: \xe9\r\nX_Thing: spoof\r\nCookie: a=1\r\nCookie: b=2\r\n"
    lines = server.get("/environ?a=b%20c", fields).body.decode().split("\n")
    found = dict(line.split("=", 1) for line in lines)
    assert found["REQUEST_METHOD"] == "'GET'" and found["QUERY_STRING"] == "'a=b%20c'"
    assert found["SERVER_PROTOCOL"] == "'HTTP/1.1'" and found["REMOTE_ADDR"] == "'127.0.0.1'"
    assert found["HTTP_X_THING"] == "'1,\xe9'" and found["HTTP_COOKIE"] == "'a=1; b=2'"
    assert found["SERVER_PORT"] == f"'{server.port}'" and found["SCRIPT_NAME"] == "''"
    assert "CONTENT_LENGTH" not in found


ROOT_PATHS = [
    # The path that comes, and what the application finds.
    ("/app/environ", "/environ"),
    ("/application/x", "/application/x"),
    ("/app", ""),
    ("/app/", "/"),
    ("/app%2Fx", "/x"),
    ("/ap", "/ap"),
    ("/x/app/y", "/x/app/y"),
]


@pytest.mark.parametrize("root", ["/app", "/app/", "app"])
def test_the_root_path_is_taken_off_by_whole_segments(run, root):
    server = run(
        """
        def app(environ, start_response):
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [f"{environ['SCRIPT_NAME']} {environ['PATH_INFO']}".encode()]
        """,
        "--root-path", root,
    )
    found = [server.get(path).body.decode() for path, _ in ROOT_PATHS]
    assert found == [f"/app {info}" for _, info in ROOT_PATHS]


def test_the_content_length_is_that_of_the_body(server):
    def lengths(fields, body=b""):
        text = f"POST /environ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n"
        raw = server.ask(text.encode() + body)
        return [line for line in raw.decode("latin-1").split("\n") if "CONTENT_LENGTH" in line]

    assert lengths("Content-Length: 3\r\n", b"abc") == ["CONTENT_LENGTH='3'"]
    assert lengths("Content-Length: 0003\r\n", b"abc") == ["CONTENT_LENGTH='3'"]
    assert lengths("Content-Length: 0\r\n") == ["CONTENT_LENGTH='0'"]
    chunked = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    assert lengths("Transfer-Encoding: chunked\r\n", chunked) == ["CONTENT_LENGTH='5'"]
    # Two of them are refused, or are one number: never `0,0`.
    assert lengths("Content-Length: 0\r\nContent-Length: 0\r\n") in (
        [], ["CONTENT_LENGTH='0'"])


def test_bodies_come_and_go_whole(server):
    for length in (0, 7, 100_000, 900_000):
        body = bytes(index * 7 % 251 for index in range(length))
        answer = server.post("/echo", body)
        assert (answer.body, answer.status, answer.is_whole) == (body, 200, True)


def test_content_may_come_in_every_form(server):
    assert server.get("/pieces").body == b"abc"
    assert server.get("/lazy").body == b"0\n1\n2\n"
    assert server.get("/written").body == b"first second"
    assert server.get("/not-a-file").body == b"in memory"
    assert server.get("/pipe").body == b"from a pipe"
    file = server.get("/file")
    assert file.body.startswith(b"import sys") and file.is_whole
    assert int(file.fields["content-length"]) == len(file.body)
    head = server.get("/hello", method="HEAD")
    assert (head.body, head.fields["content-length"]) == (b"", "13")


def test_what_was_returned_is_closed(server):
    before = int(server.get("/closed").body)
    server.get("/pieces")
    server.get("/fails-within")
    deadline = time.monotonic() + 5
    while int(server.get("/closed").body) != before + 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_whoever_fails_is_answered_for(server):
    for path, words in [
        ("/fails", "ValueError: what a pity"),
        ("/silent", "without calling start_response"),
        ("/text", "expected bytes as content"),
        ("/split", "the header field"),
    ]:
        assert server.get(path).status == 500, path
        server.wait_for_words(words)
    broken = server.get("/fails-within")
    assert (broken.status, broken.body, broken.is_whole) == (200, b"somemore", False)
    sorry = server.get("/fails-and-says")
    assert (sorry.status, sorry.body) == (500, b"sorry")


def test_the_validator_is_content(server):
    assert server.get("/valid").body == b"valid", server.said()


def test_threads_work_beside_each_other(run):
    server = run(PROGRAM, "--threads", "4")
    answers, took = server.ask_at_once("/sleep", 8)
    assert all(b"slept" in answer for answer in answers)
    assert took < 2
    assert server.end() == 0


def test_phrases_are_the_applications_own(server):
    lines = {path: server.get(path).raw.split(b"\r\n")[0] for path in ("/lazily", "/echo", "/x")}
    assert lines == {
        "/lazily": b"HTTP/1.1 201 Lazy", "/echo": b"HTTP/1.1 200 Fine", "/x": b"HTTP/1.1 200 OK"}


def test_no_client_names_a_proxy_for_requests_of_the_application(server):
    found = server.get("/environ", "Proxy: http://evil/\r\nProxy-Thing: 1\r\n").body
    assert b"HTTP_PROXY=" not in found and b"HTTP_PROXY_THING='1'" in found
