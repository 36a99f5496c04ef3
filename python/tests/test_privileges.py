"""`--user`: no thread of any process keeps root's privileges, and neither does an import."""

import os
import pathlib
import signal
import subprocess
import sys
import urllib.request

import pytest


def another_user_can_run_it():
    """Whether this interpreter and the package are of use to another user."""
    command = [sys.executable, "-c", "import gustnado"]
    try:
        return subprocess.run(command, user="nobody", cwd="/", capture_output=True).returncode == 0
    except PermissionError:
        return False


pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can change to another user"),
    pytest.mark.skipif(os.geteuid() == 0 and not another_user_can_run_it(),
                       reason="the user nobody has no access to this interpreter or package"),
]

APP = '''
import os

USER_AT_IMPORT = os.geteuid()


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    body = f"{USER_AT_IMPORT} {os.getgroups()}".encode()
    await send({"type": "http.response.body", "body": body})
'''


def statuses(pid):
    """The status of each thread of a process and its children."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        yield (task / "status").read_text()
        for child in (task / "children").read_text().split():
            yield from statuses(int(child))


def field(status, name):
    line = next(line for line in status.splitlines() if line.startswith(f"{name}:"))
    return line.split()[1:]


def start(folder, *flags):
    folder.chmod(0o755)
    for above in folder.parents[:-1]:
        if above != pathlib.Path("/tmp"):
            above.chmod(above.stat().st_mode | 0o055)
    (folder / "whose.py").write_text(APP)
    command = [sys.executable, "-m", "gustnado", "run", "whose:app", "--app-dir", str(folder),
               "--port", "0", "--lifespan", "off", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if " listens on " in line:
            return process, line.split()[-1]
    pytest.fail(f"it ended with {process.wait()}")


@pytest.mark.parametrize("flags", [(), ("--workers", "2"), ("--workers", "2", "--preload")])
def test_no_process_keeps_roots_privileges(tmp_path, flags):
    process, url = start(tmp_path, "--user", "nobody:daemon", *flags)
    try:
        with urllib.request.urlopen(url) as answer:
            assert answer.read() == b"65534 [1]"
        found = list(statuses(process.pid))
        assert len(found) > 1 + len(flags)
        for status in found:
            assert field(status, "Uid") == ["65534"] * 4
            assert field(status, "Gid") == ["1"] * 4
            assert field(status, "Groups") == ["1"]
            assert field(status, "CapEff") == field(status, "CapPrm") == ["0" * 16]
            assert field(status, "NoNewPrivs") == ["1"]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        process.stderr.close()


def test_root_without_it_gets_one_line(tmp_path):
    process, _ = start(tmp_path)
    process.send_signal(signal.SIGTERM)
    assert "--user NAME" in process.stderr.read()
    assert process.wait(20) == 0
    process.stderr.close()


def test_a_user_that_is_none_is_refused_before_anything_is_imported(tmp_path):
    (tmp_path / "app.py").write_text("raise SystemExit('imported')")
    command = [sys.executable, "-m", "gustnado", "run", "app:app", "--app-dir", str(tmp_path),
               "--port", "0", "--user", "no-such-user"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert ended.returncode == 2
    assert "expected a user of this machine" in ended.stderr
