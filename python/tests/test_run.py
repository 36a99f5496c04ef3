"""`gustnado run`: what can be said, what goes wrong, and worker processes."""

import os
import signal
import subprocess
import sys
import time

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
         "there is no --timeout-keep-alve; did you mean --timeout-keep-alive?"),
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
    # New code, one worker after the other, and nobody is refused meanwhile.
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
    server.wait_for_words("it has answered")
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
    (tmp_path / "site_app.py").write_text(HELLO.replace("VERSION", "CHANGED"))
    deadline = time.monotonic() + 15
    while not server.get("/").body.endswith(b"CHANGED"):
        assert time.monotonic() < deadline, server.said()
        time.sleep(0.05)
