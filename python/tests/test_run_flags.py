"""What flags of `gustnado run` do, seen from outside."""

import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import read_all

HELLO = """
import os

async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
"""
WSGI = """
import os, time

def app(environ, start_response):
    if environ["PATH_INFO"] == "/hang":
        time.sleep(60)
    if environ["PATH_INFO"] == "/file":
        open("made", "w").close()
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]
"""


def refused(folder, *words, env=()):
    done = subprocess.run([sys.executable, "-m", "gustnado", "run", *words], cwd=folder, timeout=30,
                          capture_output=True, text=True, env={**os.environ, **dict(env)})
    return done.returncode, done.stderr


def children(server):
    path = f"/proc/{server.process.pid}/task/{server.process.pid}/children"
    with open(path) as file:
        return file.read().split()


def wait_until(holds, server, seconds=15):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, server.said()
        time.sleep(0.02)


PROCFILES = [
    "-b 0.0.0.0:{port} -w 2 -k gthread --threads 4 --timeout 120 --graceful-timeout 30 "
    "--keep-alive 5 --access-logfile - --error-logfile - --log-level info --capture-output "
    "--max-requests 1000 --max-requests-jitter 50 --preload --name site wsgi",
    "-b :{port} -k uvicorn.workers.UvicornWorker -t 60 --worker-tmp-dir /dev/shm asgi",
    "--host 0.0.0.0 --port {port} --proxy-headers --forwarded-allow-ips * --no-access-log "
    "--http h11 --ws none --timeout-keep-alive 5 --limit-max-requests 500 --no-server-header asgi",
    "--interface asgi --port {port} --workers 1 --respawn-failed-workers --workers-max-rss 400 "
    "--workers-lifetime 6h --http 1 --no-ws --access-log asgi",
]


@pytest.mark.parametrize("line", PROCFILES)
def test_lines_of_procfiles_work_as_they_are(tmp_path, start, line):
    (tmp_path / "asgi.py").write_text(HELLO)
    (tmp_path / "wsgi.py").write_text(WSGI)
    server = start([sys.executable, "-m", "gustnado", "run", *line.split()])
    assert server.get("/").body.isdigit()
    server.wait_for_words("  serves  ")
    assert server.end() == 0 and "warning" not in server.said().lower()
    assert f"  serves  {line.split()[-1]} (" in server.said()


def test_the_environment_of_a_platform(tmp_path, monkeypatch, start):
    from conftest import free_port

    (tmp_path / "asgi.py").write_text(HELLO)
    port = free_port()
    for name, text in [("PORT", str(port)), ("WEB_CONCURRENCY", "2"), ("GUSTNADO_WORKRES", "3")]:
        monkeypatch.setenv(name, text)
    server = start([sys.executable, "-m", "gustnado", "run", "asgi:app"], waits=False)
    server.wait_for_words("2 processes")
    server.port = port
    assert server.get("/").body.isdigit() and server.end() == 0
    line = "warning: GUSTNADO_WORKRES is no setting: ignored; did you mean GUSTNADO_WORKERS?\n"
    assert server.said().startswith(line)


# --- Connections and addresses.

@pytest.mark.parametrize("words, stays", [
    (["--timeout-keep-alive", "0"], False), (["--keep-alive", "0"], False),
    (["--keep-alive", "5"], True), (["--no-http1-keep-alive"], False)])
def test_a_connection_has_one_request_where_none_is_kept(run, words, stays):
    server = run(HELLO, *words)
    with server.connect() as link:
        link.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        if stays:
            assert b"connection: close" not in link.recv(4096).lower()
            link.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        said = read_all(link)
        assert b"200 OK" in said and b"connection: close" in said.lower()


def test_an_address_without_a_host_is_every_interface(tmp_path, start):
    (tmp_path / "main.py").write_text(HELLO)
    command = [sys.executable, "-m", "gustnado", "run", "-b", ":{port}", "main:app"]
    server = start(command)
    server.wait_for_words(f"listens on http://127.0.0.1:{server.port}/ (every IPv4 interface)")


@pytest.mark.parametrize("words, believed", [
    (["--proxy-headers"], True), (["--no-proxy-headers"], False), ([], False)])
def test_a_proxy_on_this_machine(run, words, believed):
    server = run(HELLO.replace("str(os.getpid())", 'scope["client"][0]'), *words)
    answer = server.get("/", "X-Forwarded-For: 192.0.2.9\r\n")
    assert answer.body == (b"192.0.2.9" if believed else b"127.0.0.1")


def test_fields_and_the_request_s_lines(run, tmp_path):
    server = run(HELLO, "--no-server-header", "--access-logfile", "a.log")
    assert "server" not in server.get("/seen").fields
    assert server.end() == 0 and "GET /seen" in (tmp_path / "a.log").read_text()


def test_access_lines_without_a_file(tmp_path, start):
    (tmp_path / "main.py").write_text(HELLO)
    command = f"exec {sys.executable} -m gustnado run --port {{port}} --access-log main:app > out"
    server = start(["bash", "-c", command])
    assert server.get("/seen").status == 200
    assert server.end() == 0 and "GET /seen" in (tmp_path / "out").read_text()


def test_a_folder_as_granian_mounts_it(run, tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets/a.txt").write_text("a file")
    server = run(HELLO, "--static-path-mount", "assets")
    assert server.get("/static/a.txt").body == b"a file" and server.get("/").body.isdigit()


def test_a_folder_with_settings_for_deployments(run, tmp_path):
    (tmp_path / "dist/assets").mkdir(parents=True)
    (tmp_path / "dist/index.html").write_text("<p>page")
    (tmp_path / "dist/assets/main.9f2c1b7a.js").write_text("chunk")
    server = run(HELLO, "--static", "/shop=dist", "--spa", "--immutable-folders", "assets")
    page = server.get("/shop/cart/3", "Sec-Fetch-Mode: navigate\r\n")
    assert (page.status, page.body) == (200, b"<p>page")
    assert page.fields["vary"] == "Sec-Fetch-Mode, Accept"
    assert page.fields["cache-control"] == "no-cache"
    assert server.get("/shop/assets/gone.9f2c1b7a.js").status == 404
    chunk = server.get("/shop/assets/main.9f2c1b7a.js")
    assert "immutable" in chunk.fields["cache-control"]
    # What is made of the bytes is the same in every process and on every machine.
    assert chunk.fields["etag"] == '"bIf2g3GyiVRwfruS"'
    assert server.get("/cart/3", "Sec-Fetch-Mode: navigate\r\n").body.isdigit()


# --- The process.

@pytest.mark.parametrize("workers", ["1", "2"])
def test_its_number_name_and_permissions(run, tmp_path, workers):
    server = run(WSGI, "--pid", "x.pid", "--name", "a-very-long-site-name", "--umask", "027",
                 "--workers", workers)
    server.wait_for_words("listens on")
    pid = tmp_path / "x.pid"
    assert pid.read_text() == f"{server.process.pid}\n"
    for number in {str(server.process.pid), server.get("/").body.decode()}:
        with open(f"/proc/{number}/comm") as comm:
            assert comm.read() == "a-very-long-sit\n"
    assert server.get("/file").status == 200
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o640
    code, text = refused(tmp_path, "--port", "0", "--pid", "x.pid", "site_app:app")
    assert code == 2 and f"process {server.process.pid} is there, and is running" in text
    assert server.end() == 0 and not pid.exists()


def test_a_number_that_is_left_of_one_that_died_is_no_hindrance(run, tmp_path):
    done = subprocess.Popen(["true"])
    done.wait()
    (tmp_path / "x.pid").write_text(f"{done.pid}\n")
    server = run(WSGI, "--pid-file", "x.pid")
    assert (tmp_path / "x.pid").read_text() == f"{server.process.pid}\n"


@pytest.mark.parametrize("word", ["--chdir", "--working-dir"])
def test_a_folder_to_work_in(tmp_path, start, word):
    (tmp_path / "there").mkdir()
    (tmp_path / "there/other.py").write_text(WSGI)
    server = start([sys.executable, "-m", "gustnado", "run", "-p", "{port}", word, "there",
                    "--workers", "2", "other:app"])
    assert server.get("/file").status == 200 and (tmp_path / "there/made").exists()
    code, text = refused(tmp_path, word, "nowhere", "other:app")
    assert code == 2 and f"{word} nowhere: No such file or directory; name a folder" in text


def test_a_worker_that_hangs_is_replaced_and_shown(run):
    server = run(WSGI, "--timeout", "0.5")
    before = server.get("/").body
    with server.connect() as link:
        link.sendall(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
        assert read_or_reset(link) == b""
    server.wait_for_words("has died: exit code 1")
    assert "Timeout (0:00:01.500000)!" in server.said() and 'site_app.py", line' in server.said()
    wait_until(lambda: can_ask(server) and server.get("/").body != before, server)
    assert server.end() == 0


BLOCKING = {
    "wsgi": """
        import time
        def app(environ, start_response):
            time.sleep(0.4)
            start_response("200 OK", [])
            return [b"done"]
        """,
    "pieces": """
        import time
        def app(environ, start_response):
            start_response("200 OK", [("Content-Length", "2")])
            for _ in range(2):
                time.sleep(0.2)
                yield b"a"
        """,
    "asgi": """
        import time
        async def app(scope, receive, send):
            assert scope["type"] == "http"
            time.sleep(0.2)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"do", "more_body": True})
            time.sleep(0.2)
            await send({"type": "http.response.body", "body": b"ne"})
        """,
    "functions": """
        import time, gustnado
        app = gustnado.App()
        @app.get("/")
        def hello():
            time.sleep(0.4)
            return "done"
        """,
}


@pytest.mark.parametrize("face", BLOCKING)
def test_many_slow_requests_in_a_row_are_no_hang(run, face):
    server = run(BLOCKING[face], "--timeout", "0.5", "--loop", "asyncio")
    answers, took = server.ask_at_once("/", 10)
    assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers), server.said()
    assert took > 2 and "Timeout" not in server.said()
    assert server.end() == 0


def can_ask(server):
    try:
        return server.get("/").status == 200
    except (OSError, IndexError):
        return False


def read_or_reset(link):
    try:
        return link.recv(100)
    except ConnectionResetError:
        return b""


def test_a_worker_that_is_old_is_replaced(run):
    server = run(HELLO, "--workers-lifetime", "1s", "--workers", "1")
    before = server.get("/").body
    server.wait_for_words("is replaced: it has served for")
    wait_until(lambda: server.get("/").body != before, server)
    assert server.end() == 0


# --- Messages.

def test_a_quiet_one_says_nothing(run):
    server = run(HELLO, "--quiet")
    assert server.get("/").status == 200
    assert server.end() == 0 and server.said() == ""


def test_the_first_lines_are_those_of_the_other_command(run):
    import gustnado

    server = run(HELLO)
    server.wait_for_words("  stop    Ctrl-C lets responses finish, a second Ctrl-C does not\n")
    first = server.said().splitlines()[0]
    assert first == f"gustnado {gustnado.__version__} listens on http://127.0.0.1:{server.port}/"
    assert "  serves  site_app:app (ASGI on " in server.said()


@pytest.mark.parametrize("name, said", [
    ("main.py:app", "did you mean main:app?"), ("./main.py", "did you mean main:app?"),
    ("src/main.py:thing", "did you mean src.main:thing?"),
    ("main:plain", "found the function plain(); if it makes one when it is called, say --factory"),
    ("main:Thing", "say --factory"), ("", "gustnado run main:app"),
])
def test_what_is_no_application_is_told_with_the_remedy(tmp_path, name, said):
    more = "\ndef plain():\n    return app\nclass Thing:\n    pass\n"
    (tmp_path / "main.py").write_text(WSGI + more)
    code, text = refused(tmp_path, *filter(None, [name]))
    assert code in (1, 2) and said in text and text.count("\n") == 1, text


@pytest.mark.parametrize("words", [
    ["--header-timeout", "abc"], ["--static", "/x=/nope"], ["--proxy-protocol"],
    ["--access-log", "/nowhere/a.log"]])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_mistake_in_a_setting_is_blamed_on_nobody_else(tmp_path, words, workers):
    (tmp_path / "main.py").write_text("""
async def app(scope, receive, send):
    assert scope["type"] == "lifespan"
    await receive()
    print("startup")
    await send({"type": "lifespan.startup.complete"})
    await receive()
""")
    code, text = refused(tmp_path, "--port", "0", "--workers", workers, *words, "main:app")
    assert code in (1, 2) and "lifespan" not in text and "startup" not in text, text
    assert words[0].lstrip("-") in text or "/nowhere/a.log" in text


# --- A start that takes long.

HANGS = {
    "import": "import time\nopen('begun', 'w').close()\ntime.sleep(60)\n",
    "lifespan": "import asyncio\nasync def app(scope, receive, send):\n"
                "    open('begun', 'w').close()\n    await asyncio.sleep(60)\n",
    "held": "import time\nasync def app(scope, receive, send):\n"
            "    open('begun', 'w').close()\n    time.sleep(60)\n",
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", HANGS)
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_signal_ends_a_start(run, tmp_path, number, kind, loop):
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    server = run(HANGS[kind], "--loop", loop, "--lifespan", "on", waits=False)
    wait_until((tmp_path / "begun").exists, server)
    assert server.end(number) == 0 and server.said() == ""


@pytest.mark.parametrize("kind, said", [
    ("import", "starting: waiting for the application's import"),
    ("held", "starting: waiting for the application's lifespan")])
def test_a_start_that_takes_long_is_told(run, kind, said):
    server = run(HANGS[kind], waits=False)
    server.wait_for_words(said)
    assert server.end() == 0
