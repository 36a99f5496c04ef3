"""The package's types, as type checkers see them."""

import subprocess
import sys
from pathlib import Path

import gustnado
import pytest

HERE = Path(__file__).parent

WRONG = """
import gustnado

app = gustnado.App()

@app.get("/")
def told(request: gustnado.Request) -> str:
    return request.body  # a line

gustnado.Response("text", status="200")  # a line
app.run(workers="four")  # a line
app.run(prot=1)  # a line
gustnado.run("main:app", prot=1)  # a line
gustnado.run(5, port=1)  # a line
gustnado.run("main:app", log_level="loud")  # a line
gustnado.Server(app, timeout_keep_alive=[])  # a line
gustnado.run("main:app", port=1, workers="auto", static={"/x": "x"}, timeout=1.5, bind=[":80"])
version: str = gustnado.__version__
gustnado.stream(5)  # a line
gustnado.Reponse("text")  # a line
app.get("/x", exmpt=True)  # a line
app.post("/x", body="disk")  # a line
gustnado.Response.open()[1].writ(b"x")  # a line
"""


TWISTED = """
from gustnado.twisted import GustnadoReactor, install

found: GustnadoReactor = install()

from twisted.internet import reactor

def ended() -> None:
    print(type(reactor).__name__)
    found.stop()

found.callLater(0.01, ended)
found.run()
"""


def mypy(folder, *words):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_a_typed_program_is_right(tmp_path):
    code, text = mypy(tmp_path, "mypy", "--strict", "--cache-dir=c", HERE / "typed_program.py")
    assert code == 0, text


def test_a_typed_program_on_twisted_is_right_and_runs(tmp_path):
    pytest.importorskip("twisted")
    (tmp_path / "program.py").write_text(TWISTED)
    code, text = mypy(tmp_path, "mypy", "--strict", "--cache-dir=c", "program.py")
    assert code == 0, text
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True,
                          text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "GustnadoReactor\n"), done.stderr


def test_the_modules_for_twisted_are_typed(tmp_path):
    pytest.importorskip("twisted")
    pytest.importorskip("cyclone")
    # Many functions of Twisted have no types.
    words = ("--strict", "--allow-untyped-calls", "--cache-dir=c")
    code, text = mypy(tmp_path, "mypy", *words, "-p", "gustnado.twisted")
    assert code == 0, text


def test_what_is_wrong_in_a_program_is_found(tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    code, text = mypy(tmp_path, "mypy", "--strict", "--cache-dir=c", "wrong.py")
    lines = [place for place, line in enumerate(WRONG.split("\n"), 1) if "# a line" in line]
    found = {int(line.split(":")[1]) for line in text.splitlines() if ": error:" in line}
    assert code == 1 and found == set(lines), text


def test_the_program_runs(tmp_path, start):
    (tmp_path / "typed_program.py").write_text((HERE / "typed_program.py").read_text())
    for folder in ("public", "more"):
        (tmp_path / folder).mkdir()
    (tmp_path / "hello.txt").write_text("a file")
    server = start([sys.executable, "-m", "gustnado", "run", "--port", "{port}", "typed_program"])
    assert server.get("/hello/you").body == b"Hello, you!"
    assert server.get("/hello/you").fields["x-answer"] == "/hello/you"
    assert server.post("/upload", b"12345").body == b'{"bytes":5}'
    assert server.get("/file").body == b"a file"
    assert server.get("/now").status == 200 and server.get("/now").body == b"piece"
    assert server.get("/stream").fields["x-kind"] == "late"
    assert server.get("/events").body.startswith(b"retry: 1000\n\ndata: text\n\nevent: tick\n")
    assert server.get("/written", method="DELETE").body == b"done"
    assert server.get("/other", method="PATCH").status == 201
    assert server.get("/anything?a=b", method="OPTIONS").status == 200


def test_the_types_of_settings_are_made_of_the_table():
    from settings_types import text

    made = Path(gustnado.__file__).parent / "_settings.py"
    assert made.read_text() == text(), (
        "python tests/settings_types.py > gustnado/_settings.py would make it right")


def test_the_stub_is_what_the_native_module_has(tmp_path):
    code, text = mypy(tmp_path, "mypy.stubtest", "gustnado._gustnado")
    assert code == 0, text
