"""The access log of Python applications: what a line says, and when it is written."""

import json
import os
import re
import signal
import sys
import threading
import time

import pytest

NATIVE = """
import gustnado

app = gustnado.App()

@app.get("/")
def hello():
    return gustnado.Response("hello", headers={"X-Kind": "native"})

@app.get("/stream")
async def streamed():
    async def pieces():
        for _ in range(3):
            yield b"0123456789"
    return gustnado.stream(pieces())

@app.get("/fails")
def fails():
    raise RuntimeError("it is broken")
"""

PLAIN = NATIVE.replace("async def", "def").replace(
    "gustnado.stream(pieces())", '"".join(map(bytes.decode, pieces()))')

ASGI = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("there is none")
    if scope["path"] == "/fails":
        raise RuntimeError("it is broken")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-kind", b"asgi")]})
    if scope["path"] == "/stream":
        for _ in range(3):
            body = {"type": "http.response.body", "body": b"0123456789", "more_body": True}
            await send(body)
        await send({"type": "http.response.body"})
    else:
        await send({"type": "http.response.body", "body": b"hello"})
"""

WSGI = """
def app(environ, start_response):
    if environ["PATH_INFO"] == "/fails":
        raise RuntimeError("it is broken")
    start_response("200 OK", [("X-Kind", "wsgi")])
    if environ["PATH_INFO"] == "/stream":
        return (b"0123456789" for _ in range(3))
    return [b"hello"]
"""

KINDS = {
    "native": (PLAIN, ()), "native-later": (NATIVE, ()), "asgi": (ASGI, ()), "wsgi": (WSGI, ()),
    "wsgi-threads": (WSGI, ("--threads", "4")), "workers": (WSGI, ("--workers", "2")),
}


class Log:
    def __init__(self, path):
        self.path = path

    def lines(self):
        text = self.path.read_text() if self.path.exists() else ""
        assert not text or text.endswith("\n"), text[-200:]
        return text.splitlines()

    def wait_for(self, count):
        """Lines are written within a quarter of a second."""
        deadline = time.monotonic() + 10
        while len(found := self.lines()) < count:
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        return found


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path / "access.log")


@pytest.fixture(params=KINDS)
def run_kind(run, request, log):
    program, options = KINDS[request.param]

    def run_kind(*more):
        server = run(program, *options, *more, "--access-log", log.path, waits=False)
        server.wait_for_words("listens on", 30)
        return server

    return run_kind


def test_answers_streams_and_errors_have_a_line_each(run_kind, log):
    server = run_kind()
    assert server.get("/?a=b", "User-Agent: me\r\nReferer: there\r\n").body == b"hello"
    assert server.get("/stream").body == b"0123456789" * 3
    failed = server.get("/fails")
    assert failed.status == 500
    lines = log.wait_for(3)
    time_of_it = r"\[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\]"
    for line, rest in zip(sorted(lines, key=lambda line: line.split()[6]), (
        '"GET /?a=b HTTP/1.1" 200 5 "there" "me"',
        f'"GET /fails HTTP/1.1" 500 {len(failed.body)} "-" "-"',
        '"GET /stream HTTP/1.1" 200 30 "-" "-"',
    )):
        assert re.fullmatch(rf"127\.0\.0\.1 - - {time_of_it} {re.escape(rest)}", line), line
    assert server.end() == 0
    assert log.lines() == lines


def test_formats_of_gunicorn_say_the_same(run_kind, log):
    atoms = ("%(h)s|%(m)s|%(U)s|%(q)s|%(H)s|%(s)s|%(B)s|%(T)s|%(D)s|%(L)s|%(p)s|%({x-one}i)s|"
             "%({x-kind}o)s|%({none}i)s")
    server = run_kind("--access-log-format", atoms, "--forwarded-allow-ips", "127.0.0.1")
    server.get("/?q=1", 'X-Forwarded-For: 192.0.2.9\r\nX-One: a "word"\r\n')
    values = log.wait_for(1)[0].split("|")
    # The client, and not the proxy.
    assert values[:8] == ["192.0.2.9", "GET", "/", "q=1", "HTTP/1.1", "200", "5", "0"]
    assert int(values[8]) / 1e6 == pytest.approx(float(values[9]), abs=1e-5)
    assert re.fullmatch(r"<\d+>", values[10])
    assert values[11] == r'a \"word\"' and values[13] == "-"
    assert values[12] in ("native", "asgi", "wsgi")


def test_objects_of_json(run_kind, log):
    server = run_kind("--access-log-format", "json")
    server.get("/?q=%C3%A4", "User-Agent: \xe4\r\n")
    found = json.loads(log.wait_for(1)[0])
    assert (found["method"], found["path"], found["status"], found["bytes"]) == ("GET", "/", 200, 5)
    assert found["remote_address"] == "127.0.0.1" and found["duration_us"] >= 0


def test_the_client_of_a_proxy_header(run, log):
    words = ("--proxy-protocol", "--proxy-allow-from", "127.0.0.1", "--access-log", log.path)
    server = run(WSGI, *words, waits=False)
    server.wait_for_words("listens on", 30)
    server.ask(b"PROXY TCP4 192.0.2.9 192.0.2.1 4711 443\r\nGET / HTTP/1.0\r\n\r\n")
    assert log.wait_for(1)[0].startswith("192.0.2.9 - - ")


def test_a_format_that_is_wrong_is_one_line(run):
    server = run(WSGI, "--access-log", "log", "--access-log-format", "%(status)s", waits=False)
    assert server.process.wait(20) == 2
    assert "did you mean %(s)s?" in server.said() and "Traceback" not in server.said()


# --- What becomes of the file.

def test_a_log_that_was_moved_away_is_made_anew(run_kind, log, tmp_path):
    server = run_kind()
    server.get("/")
    log.wait_for(1)
    # The last lines may still be in memory: it goes into the old file.
    server.get("/")
    old = Log(tmp_path / "access.log.1")
    os.rename(log.path, old.path)
    server.process.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + 10
    while not log.path.exists():
        assert time.monotonic() < deadline, server.said()
        time.sleep(0.02)
    time.sleep(0.5)  # Until all workers have received it.
    for _ in range(8):
        server.get("/stream")
    log.wait_for(8)
    assert [line.split()[6] for line in log.lines()] == ["/stream"] * 8
    assert [line.split()[6] for line in old.lines()] == ["/"] * 2
    assert server.end() == 0


def test_a_log_that_cannot_be_made_anew_is_written_on(run, log, tmp_path):
    server = run(WSGI, "--access-log", log.path, waits=False)
    server.wait_for_words("listens on", 30)
    old = Log(tmp_path / "access.log.1")
    os.rename(log.path, old.path)
    log.path.mkdir()
    server.process.send_signal(signal.SIGUSR1)
    server.wait_for_words("the old file is written on")
    assert server.get("/").status == 200
    old.wait_for(1)


def test_the_end_loses_no_line(run_kind, log):
    server = run_kind()
    for _ in range(5):
        server.get("/")
    assert server.end() == 0
    assert len(log.lines()) == 5


SLOW = {
    "functions": "import gustnado, time\napp = gustnado.App()\n"
    "@app.get('/')\ndef hello(): return 'hello'\n"
    "@app.get('/slow')\nasync def slow():\n"
    "    import asyncio\n    await asyncio.sleep(60)\n",
    "wsgi": "import time\ndef app(environ, start_response):\n"
    "    if environ['PATH_INFO'] == '/slow': time.sleep(60)\n"
    "    start_response('200 OK', [])\n    return [b'hello']\n",
}


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("kind", SLOW)
def test_a_second_signal_loses_no_line_either(run, log, kind, workers):
    options = ("--threads", "2") if kind == "wsgi" else ()
    server = run(SLOW[kind], "--access-log", log.path, "--workers", workers, *options, waits=False)
    server.wait_for_words("listens on", 30)
    server.get("/")
    with server.connect() as link:
        link.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        time.sleep(0.1)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        assert server.end() == 128 + signal.SIGTERM
    assert [line.split()[6] for line in log.lines() if "/slow" not in line] == ["/"]


def test_workers_share_a_file_by_whole_lines(run, log):
    server = run(ASGI, "--workers", "3", "--access-log", log.path,
                 "--access-log-format", "%(p)s %({x-long}i)s end", waits=False)
    server.wait_for_words("3 processes", 30)
    word = "x" * 3000
    request = f"GET / HTTP/1.1\r\nHost: a\r\nX-Long: {word}\r\n\r\n".encode()

    def ask():
        for _ in range(5):
            with server.connect() as link:
                for _ in range(20):
                    link.sendall(request)
                    while b"hello" not in link.recv(65536):
                        pass

    asking = [threading.Thread(target=ask) for _ in range(4)]
    for one in asking:
        one.start()
    for one in asking:
        one.join()
    assert server.end() == 0
    lines = [line.split() for line in log.lines()]
    assert len(lines) == 400 and {(long, end) for _, long, end in lines} == {(word, "end")}
    assert 1 <= len({process for process, *_ in lines}) <= 3


def test_standard_output(tmp_path, start):
    (tmp_path / "site_app.py").write_text(WSGI)
    words = f"exec {sys.executable} -m gustnado run --port {{port}} --access-log - site_app:app"
    server = start(["sh", "-c", f"{words} >out"])
    server.get("/")
    assert server.end() == 0
    lines = Log(tmp_path / "out").lines()
    assert [line for line in lines if '"GET / HTTP/1.1" 200 5' in line], lines
