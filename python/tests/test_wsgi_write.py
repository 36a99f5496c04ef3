"""The `write` callable of WSGI applications (PEP 3333)."""

import time

import pytest
from conftest import read_all

PROGRAM = """
import os, sys, time

notes = []

def wait_for(name):
    deadline = time.monotonic() + 5
    while not os.path.exists(name):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the client has not got {name}")
        time.sleep(0.001)

def generator(start_response):
    write = start_response("200 OK", [])
    write(b"written ")
    yield b"yielded "
    try:
        write(b"lost")
    except AssertionError as error:
        yield str(error).encode()

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/notes":
        start_response("200 OK", [])
        return [",".join(notes).encode()]
    if path == "/generator":
        return generator(start_response)
    fields = [("Content-Length", "9")] if path == "/length" else []
    write = start_response("204 None" if path == "/nothing" else "200 OK", fields)
    if path == "/early":
        for name in ("first", "second"):
            write(name.encode())
            wait_for(name)
        return iter([b"third", b"fourth"])
    if path == "/fails":
        write(b"some")
        raise KeyError("after a write")
    if path == "/again":
        write(b"some")
        try:
            raise KeyError("for the error page")
        except KeyError:
            try:
                start_response("500 Oops", [], sys.exc_info())
            except KeyError as error:
                notes.append(f"raised {error}")
                raise
            return [b"the error page"]
    if path == "/much":
        try:
            for number in range(int(environ["QUERY_STRING"])):
                write(bytes(1 << 20))
                notes[:] = [f"written {number + 1}"]
        except OSError as error:
            notes[:] = [type(error).__name__]
            raise
        return []
    write(b"this ")
    write(b"and ")
    return (b"that",) if path == "/tuple" else []
"""


@pytest.fixture(scope="module", params=["1", "2"])
def server(request, tmp_path_factory):
    from conftest import serving

    with serving(tmp_path_factory.mktemp("write"), PROGRAM, "--threads", request.param) as server:
        server.threads = int(request.param)
        yield server


def test_what_is_written_comes_before_what_is_returned(server):
    assert server.get("/tuple").body == b"this and that"
    assert server.get("/list").body == b"this and "
    answer = server.get("/length")
    assert answer.body == b"this and " and answer.fields["content-length"] == "9"
    assert server.get("/generator").body.startswith(b"written yielded write was called before")


@pytest.mark.parametrize("method, path", [("HEAD", "/tuple"), ("HEAD", "/length"),
                                          ("HEAD", "/early"), ("GET", "/nothing")])
def test_nothing_is_sent_where_the_response_has_no_content(server, method, path):
    for name in ("first", "second"):
        (server.folder / name).touch()
    answer = server.get(path, method=method)
    assert answer.status == (204 if path == "/nothing" else 200) and answer.body == b""
    for name in ("first", "second"):
        (server.folder / name).unlink()
    assert server.get("/tuple").status == 200 and "Traceback" not in server.said()


def test_threads_send_it_while_the_application_goes_on(server):
    if server.threads == 1:
        pytest.skip("the engine's thread cannot")
    with server.connect() as link:
        link.sendall(b"GET /early HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        came = b""
        for name in ("first", "second"):
            while name.encode() not in came:
                piece = link.recv(4096)
                assert piece, came
                came += piece
            (server.folder / name).touch()
        came += read_all(link)
    assert came.startswith(b"HTTP/1.1 200") and came.endswith(b"fourth\r\n0\r\n\r\n")
    assert came.index(b"second") < came.index(b"third")


def test_an_application_that_fails_once_its_head_is_sent_is_cut_off(server):
    if server.threads == 1:
        assert server.get("/fails").status == 500
        assert server.get("/again").body == b"the error page"
    else:
        for path in "/fails", "/again":
            assert not server.get(path).is_whole
        assert server.get("/notes").body == b"raised 'for the error page'"
    server.wait_for_words("KeyError: 'after a write'")


def test_what_waits_for_the_client_is_bounded(server):
    if server.threads == 1:
        answer = server.get("/much?60")
        assert answer.status == 200 and len(answer.body) == 60 << 20
        assert server.get("/much?70").status == 500
        server.wait_for_words("return an iterable, or set --threads 2")
        return
    with server.connect() as link:
        link.sendall(b"GET /much?1000 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert link.recv(4096)
        time.sleep(0.5)
        written = int(server.get("/notes").body.split()[-1])
        assert written < 50
    deadline = time.monotonic() + 5
    while server.get("/notes").body != b"ClientDisconnected":
        assert time.monotonic() < deadline, server.get("/notes").body
        time.sleep(0.02)
    assert "ClientDisconnected" not in server.said()
