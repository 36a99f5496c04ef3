"""`gustnado run`: what can be said, what goes wrong, and worker processes."""

import os
import select
import signal
import socket
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
    await send({"type": "http.response.body", "body": f"{os.getpid()} VERSION".encode()})
"""


def refused(folder, *words):
    command = [sys.executable, "-m", "gustnado", "run", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stderr


def test_what_cannot_be_served_is_one_line(tmp_path):
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "fine.py").write_text("app = 5\ndef application(a): pass\n")
    for words, said in [
        (["absent:app"], "there is no module 'absent'"),
        (["broken:app"], "the module 'broken' cannot be imported"),
        (["fine:aplication"], "has no 'aplication'; did you mean 'application'?"),
        (["fine:app"], "expected an application, found 5"),
        (["fine:application"], "expected a gustnado.App, an ASGI application"),
        (["fine:app", "--timeout-keep-alve", "5s"],
         "--timeout-keep-alve: no such flag; did you mean --timeout-keep-alive?"),
        (["fine:application", "--interface", "asgi", "--timeout-keep-alive", "soon"],
         "timeout-keep-alive"),
    ]:
        code, text = refused(tmp_path, *words)
        assert code != 0 and said in text, (words, text)
        assert "broken" not in words[0] or "No module named 'nothing_of_this_name'" in text
    with_port = ["--port", "1", "--host", "192.0.2.1"]
    code, text = refused(tmp_path, *with_port, "--interface", "wsgi", "fine:application")
    assert code == 1 and "192.0.2.1" in text, text


def pids(server, asks=40):
    return {server.get("/").body.split()[0] for _ in range(asks)}


def test_workers_share_a_port_and_are_replaced(run, tmp_path):
    server = run(HELLO, "--workers", "2")
    server.wait_for_words("2 processes")
    found = pids(server)
    deadline = time.monotonic() + 10
    while len(found) < 2:
        assert time.monotonic() < deadline
        found |= pids(server)
    os.kill(int(next(iter(found))), signal.SIGKILL)
    server.wait_for_words("has died: signal SIGKILL")
    deadline = time.monotonic() + 10
    while len(pids(server) - found) < 1:
        assert time.monotonic() < deadline, server.said()
    # New code, one worker after the other, and no connection is refused meanwhile.
    (tmp_path / "site_app.py").write_text(HELLO.replace("VERSION", "NEW"))
    server.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 20
    new = 0
    while new < 40:
        assert time.monotonic() < deadline, server.said()
        new = new + 1 if server.get("/").body.endswith(b"NEW") else 0
    assert server.end() == 0


def test_new_code_that_is_broken_leaves_the_old_ones_serving(run, tmp_path):
    server = run(HELLO, "--workers", "2")
    server.wait_for_words("2 processes")
    (tmp_path / "site_app.py").write_text("raise ValueError('broken')\n")
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_words("ValueError: broken")
    server.wait_for_words("goes on in its place")
    assert server.get("/").status == 200
    assert server.end() == 0


def test_workers_have_their_day(run):
    server = run(HELLO, "--workers", "1", "--max-requests", "20")
    first = pids(server, 1)
    deadline = time.monotonic() + 15
    while not pids(server, 5) - first:
        assert time.monotonic() < deadline, server.said()
    server.wait_for_words("it has served")
    assert server.end() == 0


def test_an_application_that_cannot_be_imported_ends_all(run):
    server = run("raise ValueError('broken')\n", "--workers", "2", waits=False)
    assert server.process.wait(20) != 0
    assert "ValueError: broken" in server.said()


def test_nothing_of_it_outlives_the_supervisor(run):
    server = run(HELLO, "--workers", "2")
    server.wait_for_words("2 processes")
    server.process.kill()
    server.process.wait()
    deadline = time.monotonic() + 10
    while True:
        try:
            server.connect(1).close()
        except OSError:
            return
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_file_that_changes_is_served_anew(run, tmp_path):
    server = run(HELLO, "--reload")
    assert server.get("/").body.endswith(b"VERSION")
    changed = tmp_path / "site_app.py"
    written_ns = changed.stat().st_mtime_ns
    changed.write_text(HELLO.replace("VERSION", "CHANGED"))
    # In the second in which it was written, with as many bytes: Python has bytecode for both.
    same_second_ns = written_ns - written_ns % 10**9 + (written_ns + 1) % 10**9
    os.utime(changed, ns=(same_second_ns, same_second_ns))
    deadline = time.monotonic() + 15
    while not server.get("/").body.endswith(b"CHANGED"):
        assert time.monotonic() < deadline, server.said()
        time.sleep(0.05)


# --- What cannot be started.

FAILING = {
    "raises": "raise RuntimeError('the module is broken')\n",
    "syntax": "def app(:\n",
    "exits": "import sys\nsys.exit('not today')\n",
    "factory": "def app():\n    raise RuntimeError('the factory is broken')\n",
    "lifespan": """
async def app(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no database"})
""",
    "strict": "async def app(scope, receive, send):\n    raise RuntimeError('it is broken')\n",
    "native": "import gustnado\napp = gustnado.App()\n",
}


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("name, words, said, shown", [
    ("raises", [], "the module 'raises' cannot be imported", "the module is broken"),
    ("syntax", [], "the module 'syntax' cannot be imported", "SyntaxError"),
    ("exits", [], "the module 'exits' cannot be imported", "not today"),
    ("factory", ["--factory"], "the factory 'factory:app' has failed", "the factory is broken"),
    ("lifespan", [], "the application could not start: no database", None),
    ("strict", ["--lifespan", "on"], "the application could not start", "it is broken"),
    ("native", ["--interface", "wsgi"], "--interface wsgi, but the application is a gustnado.App",
     None),
    ("native", ["--timeout-keep-alive", "soon"], "timeout-keep-alive", None),
    ("native", ["--fd", "77"], "cannot listen on descriptor 77", None),
    ("native", ["--uds", "/nowhere/at.all"], "cannot listen on unix:/nowhere/at.all", None),
])
def test_a_failure_is_one_line_and_the_application_s_own_traceback(
    tmp_path, workers, name, words, said, shown
):
    (tmp_path / f"{name}.py").write_text(FAILING[name])
    port = [] if "--fd" in words or "--uds" in words else ["--port", "0"]
    code, text = refused(tmp_path, *port, "--workers", workers, *words, f"{name}:app")
    assert code in (1, 2), (code, text)
    lines = [line for line in text.splitlines() if line.startswith("gustnado")]
    assert any(said in line for line in lines), text
    assert "_loading.py" not in text and "_supervisor.py" not in text and "importlib" not in text
    if shown is None:
        assert "Traceback" not in text, text
    else:
        assert shown in text, text


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_port_that_is_taken_is_named(tmp_path, workers):
    (tmp_path / "native.py").write_text(FAILING["native"])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, text = refused(tmp_path, "--port", port, "--workers", workers, "native:app")
    assert code == 1 and text.count("\n") == 1, text
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in text


# --- Workers that die.

MORTAL = """
import ctypes, os, signal

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/segv":
        ctypes.string_at(0)
    if path == "/exit":
        os._exit(7)
    if path == "/kill":
        os.kill(os.getpid(), signal.SIGKILL)
    body = str(os.getpid()).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


def test_a_worker_that_dies_is_replaced_and_the_reason_logged(run):
    server = run(MORTAL, "--workers", "2")
    server.wait_for_words("2 processes")
    for path, reason in [("/segv", "signal SIGSEGV"), ("/exit", "exit code 7"),
                         ("/kill", "signal SIGKILL")]:
        with server.connect() as link:
            link.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            try:
                assert link.recv(100) == b""
            except ConnectionResetError:
                pass
        server.wait_for_words(f"has died: {reason}")
    wait_until(lambda: len(pids(server)) == 2, server)
    assert server.end() == 0


def test_workers_that_die_again_and_again_are_started_less_and_less_often(run):
    server = run("""
        import os, threading

        def app(environ, start_response):
            start_response("200 OK", [])
            return []

        threading.Timer(0.2, os._exit, [5]).start()
        """, "--workers", "2")
    time.sleep(4)
    deaths = server.said().count("has died: exit code 5")
    # Without a pause there would be some twenty.
    assert 2 <= deaths <= 12, server.said()
    assert server.end() == 0


def test_new_code_whose_lifespan_fails_leaves_the_old_ones_serving(run, tmp_path):
    server = run(HELLO, "--workers", "2")
    server.wait_for_words("2 processes")
    (tmp_path / "site_app.py").write_text(FAILING["lifespan"])
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_words("no database")
    server.wait_for_words("goes on in its place")
    assert len({server.get("/").status for _ in range(20)}) == 1
    assert server.end() == 0


# --- Their number, age and size.

def wait_until(holds, server, seconds=15):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, server.said()
        time.sleep(0.05)


def children(server):
    path = f"/proc/{server.process.pid}/task/{server.process.pid}/children"
    with open(path) as file:
        return file.read().split()


def test_one_more_and_one_less(run):
    server = run(HELLO, "--workers", "1", "--max-requests", "1000000")
    server.wait_for_words("listens on")
    server.process.send_signal(signal.SIGTTIN)
    wait_until(lambda: len(children(server)) == 2 and len(pids(server)) == 2, server)
    server.process.send_signal(signal.SIGTTOU)
    wait_until(lambda: len(children(server)) == 1, server)
    # The last one stays.
    server.process.send_signal(signal.SIGTTOU)
    time.sleep(0.3)
    assert len(children(server)) == 1 and server.get("/").status == 200
    assert server.end() == 0


def test_jitter_spreads_the_days_of_workers(monkeypatch):
    from gustnado._plan import Plan
    from gustnado._process import Process

    plan = Plan("x:y", max_requests=100, max_requests_jitter=50)
    found = {Process(plan, None)._requests_max for _ in range(200)}
    assert min(found) >= 100 and max(found) <= 150 and len(found) > 10


def test_a_worker_that_has_grown_is_replaced(run):
    server = run("""
        import os
        kept = []

        def app(environ, start_response):
            kept.append(bytearray(os.urandom(1)) * (32 << 20))
            start_response("200 OK", [])
            return [str(os.getpid()).encode()]
        """, "--max-worker-rss", "150m")
    first = pids(server, 1)
    wait_until(lambda: pids(server, 1) != first, server)
    server.wait_for_words("MB of memory")
    assert server.end() == 0


# --- Where it listens.

def started(tmp_path, words, **options):
    (tmp_path / "site_app.py").write_text(HELLO)
    command = [sys.executable, "-m", "gustnado", "run", *words, "site_app:app"]
    return subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, **options)


def asked(link):
    with link:
        link.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return read_all(link)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_unix_socket_is_removed_at_the_end(tmp_path, workers):
    path = tmp_path / "its.socket"
    process = started(tmp_path, ["--uds", path, "--workers", workers])
    try:
        assert f"unix:{path}" in process.stderr.readline()
        link = socket.socket(socket.AF_UNIX)
        link.connect(str(path))
        assert b" 200 " in asked(link)
    finally:
        process.terminate()
        process.communicate(timeout=15)
    assert process.returncode == 0 and not path.exists()


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("way", ["fd", "LISTEN_FDS"])
def test_a_socket_that_it_was_started_with_outlives_it(tmp_path, workers, way):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        number = listening.fileno()
        (tmp_path / "site_app.py").write_text(HELLO)
        words = ["--workers", workers, "site_app:app"]
        command = [sys.executable, "-m", "gustnado", "run"]
        if way == "fd":
            command += ["--fd", str(number)]
        else:
            given = f"exec 3<&{number}; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\""
            command = ["bash", "-c", given, "bash", *command]
        process = subprocess.Popen(
            [*command, *words], cwd=tmp_path, pass_fds=[number], stderr=subprocess.PIPE, text=True,
        )
        try:
            assert "listens on" in process.stderr.readline()
            for _ in range(5):
                assert b" 200 " in asked(socket.create_connection(listening.getsockname()))
        finally:
            process.terminate()
            process.communicate(timeout=15)
        assert process.returncode == 0
        # New connections are served by the next one: none is refused.
        waiting = socket.create_connection(listening.getsockname(), timeout=5)
        waiting.sendall(b"GET /")
        assert select.select([listening], [], [], 5)[0]
        listening.accept()[0].close()
        waiting.close()


# --- Messages.

def test_code_that_is_broken_while_it_is_developed_waits_for_a_change(run, tmp_path):
    server = run("raise ValueError('broken')\n", "--reload", waits=False)
    server.wait_for_words("waiting for a change")
    assert server.said().count("ValueError: broken") == 1
    (tmp_path / "site_app.py").write_text(HELLO)
    server.wait_for_words("listens on")
    assert server.get("/").status == 200
    assert server.end() == 0


@pytest.mark.parametrize("words, said", [
    (["--threads", "8"], "1 process x (1 engine thread + 8 threads for WSGI) on "),
    ([], "1 process x (1 thread for engine and WSGI) on "),
    ([], "note    one slow view stops all connections of its process"),
])
def test_what_runs_is_said_at_the_start(run, words, said):
    server = run(MORTAL, *words)
    server.wait_for_words(said)


def test_processes_without_a_cpu_are_doubted():
    from gustnado import _threads
    from gustnado._plan import Plan

    here = _threads.cpus()
    plan = Plan("x:y", workers=here + 1)
    assert any(f"--workers {here} is enough" in one for one in _threads.warnings(plan, "asgi"))
    assert not list(_threads.warnings(Plan("x:y", workers=here), "asgi"))
    plan = Plan("x:y", threads=8)
    assert any("--threads 8 changes nothing" in one for one in _threads.warnings(plan, "asgi"))


# --- Handlers that hold the thread.

SLOW = """
import asyncio, time
import gustnado

def work(seconds=0.5):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.01)

async def asgi(scope, receive, send):
    assert scope["type"] == "http"
    if scope["path"] == "/later":
        await asyncio.sleep(0.01)
    if scope["path"] != "/":
        work()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x"})

def wsgi(environ, start_response):
    if environ["PATH_INFO"] != "/":
        work()
    start_response("200 OK", [])
    return [b"x"]

native = gustnado.App()

@native.get("/plain")
def plain():
    work()
    return "x"

@native.get("/asked")
def asked(request):
    work()
    return "x"

@native.get("/later")
async def later(request):
    await asyncio.sleep(0.01)
    work()
    return "x"

@native.get("/")
def nothing():
    return "x"
"""


@pytest.mark.parametrize("app, paths", [
    ("asgi", ["/first", "/later"]), ("wsgi", ["/view"]), ("native", ["/plain", "/asked", "/later"]),
])
def test_a_handler_that_holds_the_thread_is_named(run, app, paths):
    server = run(SLOW.replace(f"{app} =", "app =").replace(f"@{app}", "@app")
                 .replace(f"def {app}(", "def app("), "--slow-handler", "150ms")
    for _ in range(50):
        assert server.get("/").body == b"x"
    assert "held the thread" not in server.said()
    for path in paths:
        assert server.get(path).body == b"x"
        server.wait_for_words(f"GET {path} (site_app.work) held the thread for 0.")


def test_nobody_is_named_where_nobody_asks(run):
    server = run(SLOW.replace("def wsgi(", "def app("), "--slow-handler", "0")
    assert server.get("/view").body == b"x"
    time.sleep(0.3)
    assert "held the thread" not in server.said()
