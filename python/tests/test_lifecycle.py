"""Starting, reloading and ending: signals at any time, the lifespan's own time, and preloading."""

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
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
WAITS = """
import asyncio, sys, time

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        START
        await send({"type": "lifespan.startup.complete"})
        await receive()
        print("the shutdown has begun", file=sys.stderr)
        END
        print("the shutdown has ended", file=sys.stderr)
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while scope["path"] == "/stream":
        await send({"type": "http.response.body", "body": b"piece", "more_body": True})
        await asyncio.sleep(0.05)
    await send({"type": "http.response.body", "body": b"here you are"})
"""


def waits(start="pass", end="pass"):
    return WAITS.replace("START", start).replace("END", end)


def wait_until(holds, server, seconds=15):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, server.said()
        time.sleep(0.02)


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(server):
    with open(f"/proc/{server.process.pid}/task/{server.process.pid}/children") as file:
        return file.read().split()


# --- HUP.

@pytest.mark.parametrize("program", [
    HELLO,
    "import os\ndef app(environ, start_response):\n    start_response('200 OK', [])\n"
    "    return [f'{os.getpid()} VERSION'.encode()]\n",
])
def test_a_single_process_reloads_and_loses_nothing(run, tmp_path, program):
    server = run(program)
    server.wait_for_words("listens on")
    answers, wrong, is_over = [], [], threading.Event()

    def ask():
        while not is_over.is_set():
            try:
                answers.append(server.get("/").body)
            except (OSError, IndexError) as error:
                wrong.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for version in (b"SECOND", b"THIRD"):
            (tmp_path / "site_app.py").write_text(program.replace("VERSION", version.decode()))
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda version=version: answers and answers[-1].endswith(version), server)
    finally:
        is_over.set()
        asking.join()
    assert not wrong and answers[0].endswith(b"VERSION")
    assert server.process.poll() is None
    assert server.end() == 0
    with pytest.raises(OSError):
        server.connect(1).close()


def test_new_code_that_is_broken_leaves_a_single_process_as_it_is(run, tmp_path):
    server = run(HELLO)
    server.wait_for_words("listens on")
    broken = ("raise ValueError('broken')\n", "ValueError: broken"), ("app = 5\n", "found 5")
    for text, said in broken:
        (tmp_path / "site_app.py").write_text(text)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_words(said)
        server.wait_for_words("the new process could not start: this one goes on")
        assert server.get("/").body.endswith(b"VERSION")
    wait_until(lambda: not children(server), server)
    assert server.end() == 0


def test_a_stream_that_is_under_way_stops_nobody_from_reloading(run, tmp_path):
    server = run(waits(), "--timeout-graceful-shutdown", "1s", "--uds", "its.socket", waits=False)
    server.wait_for_words("listens on")
    path = tmp_path / "its.socket"

    def asked(what):
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(10)
        link.connect(str(path))
        link.sendall(f"GET {what} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        return link

    with asked("/stream") as stream:
        assert b" 200 " in stream.recv(4096)
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: children(server), server)
        server.wait_for_words("1 connections were cut")
        with asked("/") as link:
            assert read_all(link).endswith(b"here you are")
    server.wait_for_words("the shutdown has ended")
    assert path.exists()
    assert server.end() == 0 and not path.exists()


def test_term_during_a_reload_ends_both(run):
    server = run(waits(), "--timeout-graceful-shutdown", "1s")
    server.wait_for_words("listens on")
    with server.connect() as stream:
        stream.sendall(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b" 200 " in stream.recv(4096)
        server.process.send_signal(signal.SIGHUP)
        # The new one serves: a drain has begun.
        wait_until(lambda: children(server), server)
        time.sleep(0.3)
        assert server.end() == 0
    with pytest.raises(OSError):
        server.connect(1).close()


def test_one_worker_less_while_none_lives_is_one_less_later(run, tmp_path):
    server = run(HELLO, "--workers", "2")
    server.wait_for_words("listens on")
    (tmp_path / "site_app.py").write_text("raise ValueError('broken')\n")
    for pid in children(server):
        os.kill(int(pid), signal.SIGKILL)
    # By then the next one is started after a second and more.
    wait_until(lambda: server.said().count("has died") >= 6, server)
    server.process.send_signal(signal.SIGTTOU)
    (tmp_path / "site_app.py").write_text(HELLO)
    wait_until(lambda: children(server), server)
    time.sleep(1)
    assert server.get("/").status == 200 and len(children(server)) == 1
    assert server.end() == 0


# --- INT and TERM before it serves.

SLOW_STARTS = {
    "import": "import time; print('starting\\n', end='', flush=True); time.sleep(30)\n" + HELLO,
    "lifespan": waits("print('starting\\n', end='', flush=True); await asyncio.sleep(30)"),
    "lifespan that blocks": waits("print('starting\\n', end='', flush=True); time.sleep(30)"),
}


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", SLOW_STARTS)
def test_a_signal_during_the_start_ends_it_in_order(tmp_path, workers, name, number):
    assert _ended_while_it_starts(tmp_path, workers, name, number) == 0


def _ended_while_it_starts(folder, workers, name, number):
    (folder / "site_app.py").write_text(SLOW_STARTS[name])
    command = [sys.executable, "-m", "gustnado", "run", "--port", "0", "--workers", workers,
               "site_app:app"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, process_group=0) as process:
        for _ in range(int(workers)):
            assert "starting" in process.stdout.readline()
        # As a terminal does: to the supervisor and its workers.
        os.killpg(process.pid, number)
        ends = time.monotonic() + 5
        while process.poll() is None and time.monotonic() < ends:
            time.sleep(0.02)
        process.kill()
        assert "Traceback" not in process.stderr.read()
    return process.returncode


def test_a_start_that_takes_long_is_mentioned(run):
    server = run(waits("await asyncio.sleep(30)"), waits=False)
    server.wait_for_words("starting: waiting for the application's lifespan")
    assert server.end() == 0


# --- The lifespan's shutdown.

@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_shutdown_has_time_of_its_own(run, workers):
    server = run(waits(end="await asyncio.sleep(1.7)"), "--timeout-graceful-shutdown", "200ms",
                 "--workers", workers)
    server.wait_for_words("listens on")
    with server.connect() as stream:
        stream.sendall(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b" 200 " in stream.recv(4096)
        assert server.end() == 0
    assert server.said().count("the shutdown has ended") == int(workers), server.said()


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("end, said", [
    ("await asyncio.sleep(30)", "the application's shutdown took longer than 0.2 s"),
    ("time.sleep(30)", "the shutdown has begun"),
    ("raise ValueError('no end')", "ValueError: no end"),
])
def test_a_shutdown_that_fails_is_told_by_the_exit_code(run, workers, end, said):
    server = run(waits(end=end), "--lifespan-timeout", "200ms", "--workers", workers)
    server.wait_for_words("listens on")
    began = time.monotonic()
    assert server.end() == 1
    assert time.monotonic() - began < 5
    assert said in server.said() and "the shutdown has ended" not in server.said()


# --- Unix sockets.

@pytest.mark.parametrize("words, mode", [([], 0o666), (["--uds-permissions", "640"], 0o640)])
def test_a_unix_socket_is_for_everyone_or_for_whom_is_said(run, tmp_path, words, mode):
    server = run(HELLO, "--uds", "its.socket", *words, waits=False)
    server.wait_for_words("listens on")
    assert stat.S_IMODE(os.stat(tmp_path / "its.socket").st_mode) == mode


@pytest.mark.parametrize("words, said", [
    (["--uds-permissions", "rw"], "expected permissions in octal such as 660, found \"rw\""),
    (["--uds-permissions", "1777"], "expected permissions in octal"),
    (["--workers", "9999"], 'expected a whole number from 1 to 1024, or auto, found "9999"'),
    (["--workers", "0"], 'expected a whole number from 1 to 1024, or auto, found "0"'),
    (["--preload", "--reload"], "leave one of them out"),
])
def test_what_cannot_be_is_refused(tmp_path, words, said):
    (tmp_path / "site_app.py").write_text(HELLO)
    command = [sys.executable, "-m", "gustnado", "run", "--port", "0", *words, "site_app:app"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_the_number_of_workers_has_bounds_however_it_is_said():
    from gustnado._plan import Plan

    for count in (0, -1, 1025):
        with pytest.raises(ValueError, match="expected 1 to 1024 worker processes"):
            Plan("x:y", workers=count)


# --- Preloading.

LARGE = """
import os
print("imported", flush=True)
kept = [str(number) * 10 for number in range(300_000)]

def app(environ, start_response):
    start_response("200 OK", [])
    return [f"{os.getpid()} VERSION".encode()]
"""


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024


def test_preloaded_workers_share_the_memory_of_one_import(run, tmp_path):
    server = run(LARGE, "--preload", "--workers", "3", "--threads", "2")
    server.wait_for_words("3 processes")
    wait_until(lambda: len({server.get("/").body for _ in range(10)}) == 3, server)
    with open(f"/proc/{server.process.pid}/status") as file:
        assert "Threads:\t1\n" in file.read()
    of_application = 300_000 * 75 / 1e6
    each = [pss(pid) for pid in children(server)]
    assert len(each) == 3 and max(each) < of_application, each
    # One that dies is replaced by another copy, and HUP says what it cannot do.
    os.kill(int(children(server)[0]), signal.SIGKILL)
    wait_until(lambda: len(children(server)) == 3, server)
    before = set(children(server))
    (tmp_path / "site_app.py").write_text("raise ValueError('never imported')\n")
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_words("workers restart with the loaded code")
    wait_until(lambda: len(children(server)) == 3 and not before & set(children(server)), server)
    assert server.get("/").body.endswith(b"VERSION")
    assert server.end() == 0


@pytest.mark.parametrize("flags", [(), ("--preload",)])
def test_workers_end_after_a_supervisor_that_was_killed(run, flags):
    server = run(HELLO, "--workers", "3", *flags)
    server.wait_for_words("3 processes")
    workers = children(server)
    # With one that was replaced, their ends of the channels are of different ages.
    os.kill(int(workers[0]), signal.SIGKILL)
    wait_until(lambda: len(set(children(server)) - set(workers)) == 1, server)
    wait_until(lambda: len({server.get("/").body for _ in range(10)}) == 3, server)
    workers = children(server)
    server.process.kill()
    server.process.wait()
    wait_until(lambda: not any(runs(pid) for pid in workers), server)


def test_workers_end_after_a_supervisor_that_had_not_heard_them(run, tmp_path):
    begins = 'import os, time\nopen(f"began.{os.getpid()}", "w").close()\ntime.sleep(0.5)\n'
    server = run(begins + HELLO, "--workers", "2", waits=False)
    # By then each has been told what to do.
    wait_until(lambda: len(list(tmp_path.glob("began.*"))) == 2, server)
    workers = children(server)
    # What they say meanwhile, that they are ready, is lost with it.
    server.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: len({server.get("/").body for _ in range(10)}) == 2, server)
    server.process.kill()
    server.process.wait()
    wait_until(lambda: not any(runs(pid) for pid in workers), server)


def test_what_cannot_be_preloaded_is_one_line(tmp_path):
    (tmp_path / "site_app.py").write_text("raise ValueError('broken')\n")
    command = [sys.executable, "-m", "gustnado", "run", "--preload", "--port", "0", "site_app:app"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "ValueError: broken" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("gustnado: the module 'site_app' cannot be")


def test_threads_that_an_import_starts_are_mentioned(run):
    server = run("import threading, time\n"
                 "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n" + HELLO,
                 "--preload")
    server.wait_for_words("--preload: the application has started 1 threads")
    assert server.get("/").status == 200
    assert server.end() == 0


EXITS = """
import atexit, os, sys, tempfile

def note(words):
    with open("exits", "a") as file:
        file.write(f"{words} {os.getpid()}\\n")

folder = tempfile.TemporaryDirectory(dir=".")
atexit.register(note, "imported")

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        atexit.register(note, "started")
        print("buffered", end="")
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    text = f"{os.getpid()} {os.path.isdir(folder.name)}"
    await send({"type": "http.response.body", "body": text.encode()})
"""


@pytest.mark.parametrize("how", ["--preload", "run"])
def test_workers_that_are_copies_exit_as_others_do(run, serve, tmp_path, how):
    if how == "run":
        server = serve(EXITS + """
import gustnado
gustnado.run(app, port=int(sys.argv[1]), workers=2)
""")
    else:
        server = run(EXITS, "--preload", "--workers", "2")
    server.wait_for_words("listens on")
    first = set(children(server))
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: len(children(server)) == 2 and not first & set(children(server)), server)
    exits = (tmp_path / "exits").read_text().splitlines()
    assert sorted(exits) == sorted(f"{what} {pid}" for pid in first
                                   for what in ("imported", "started"))
    # What the program has made is not theirs.
    assert server.get("/").body.endswith(b" True")
    assert server.end() == 0
    exits = (tmp_path / "exits").read_text().splitlines()
    assert len(exits) == 9 and exits[-1] == f"imported {server.process.pid}"
    assert "Traceback" not in server.said()
