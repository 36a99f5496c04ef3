"""What documents show: programs run, commands and their flags are there, tables are whole."""

import functools
import importlib
import re
import shlex
import ssl
import subprocess
import sys
import time
from pathlib import Path

import gustnado
import pytest
from conftest import Server, free_port
from gustnado import _command_line, _peers
from gustnado._options import FIT
from gustnado._plan import plan_of
from test_tls import openssl

HOUSE = Path(__file__).parents[2]
PAGES = [*sorted((HOUSE / "docs").rglob("*.md")), HOUSE / "python" / "README.md",
         HOUSE / "README.md"]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


PROGRAMS = [pytest.param(text, id=f"{page.stem}-{number}")
            for page in PAGES for number, text in enumerate(blocks(page, "python"))]
COMMANDS = [line.partition("  #")[0].strip()
            for page in PAGES for text in blocks(page, "sh") for line in text.splitlines()
            if line.startswith("gustnado run")]


@pytest.mark.parametrize("text", PROGRAMS)
def test_programs_run(tmp_path, text):
    if "twisted" in text:
        pytest.importorskip("twisted.internet")
    if "cyclone" in text:
        pytest.importorskip("cyclone")
    port = free_port()
    (tmp_path / "public").mkdir()
    (tmp_path / "main.py").write_text(text.replace("8000", str(port)).replace("8888", str(port)))
    words = ["main.py"]
    if not re.search(r"run[()]", text):
        if "import reactor" in text:
            done = subprocess.run([sys.executable, *words], cwd=tmp_path, timeout=60)
            assert done.returncode == 0
            return
        words = ["-m", "gustnado", "run", "--port", str(port), "main"]
    if "native_tls" in text:
        openssl(tmp_path, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
                "-keyout", "key.pem", "-out", "cert.pem")
    server = Server(tmp_path, [sys.executable, *words], port)
    try:
        if "native_tls" in text:
            context = ssl.create_default_context(cafile=tmp_path / "cert.pem")
            with context.wrap_socket(server.connect(), server_hostname="localhost") as link:
                link.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                assert b" 200 " in link.recv(65536)
            return
        sockets = re.findall(r'@app.websocket\("(.*?)"\)', text)
        for path in sockets:
            assert b" 426 " in ask(server, path)
        for path in re.findall(r'@app.get\("(.*?)"\)', text) or ["/"][:not sockets]:
            answer = ask(server, path.replace("{name}", "you"))
            assert b" 200 " in answer or b" 401 " in answer, answer
    finally:
        server.kill()


def ask(server, path):
    with server.connect() as link:
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        time.sleep(0.2)
        return link.recv(65536)


def test_names_of_the_reference_are_there():
    text = (HOUSE / "docs" / "python" / "reference.md").read_text()
    rows = re.findall(r"^\| `gustnado\.([\w.]+)` \|", text, re.M)
    names = rows + re.findall(r"^### ([\w.]+)$", text, re.M)
    assert len(names) > 15
    for name in names:
        if name.startswith("twisted"):
            pytest.importorskip("twisted.internet")
            importlib.import_module("gustnado.twisted")
        functools.reduce(getattr, name.split("."), gustnado)


def test_there_are_programs_and_commands():
    assert len(PROGRAMS) >= 6 and len(COMMANDS) >= 5, (PROGRAMS, COMMANDS)


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_are_understood(line):
    words = _command_line.Arguments(shlex.split(line.replace("$PORT", "8000"))[2:])
    given = {name: pairs for name, pairs in words.given.items() if name != "static"}
    plan, _ = plan_of(words.app, given, words.weak, {})
    assert ":" in plan.app or "." in plan.app


def flags_here():
    return {option.flag for option in FIT.values()} | set(_peers.BY_WORD)


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name == "python"],
                         ids=lambda page: page.stem)
def test_flags_that_are_ours_are_there(page):
    """In tables that compare, the right column is this package's; elsewhere, all are."""
    if page.stem in ("twisted", "cyclone", "README"):
        pytest.skip("its flags are those of twistd and of Cyclone")
    text = page.read_text()
    compared = re.compile(r"^\| (gunicorn|uvicorn|granian|hypercorn) \| here \|\n(?:\|.*\n)+", re.M)
    right = [row.split(" | ", 1)[1] for table in compared.finditer(text)
             for row in table.group().splitlines()[2:]]
    rest = re.sub(r"^(gunicorn|uvicorn) .*$", "", compared.sub("", text), flags=re.M)
    found = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", "\n".join([rest, *right])))
    # The command's own, of which `run` is one.
    assert found - flags_here() - {"--version", "--help"} == set()


@pytest.mark.parametrize("page, name", [("asgi", "uvicorn"), ("wsgi", "gunicorn")])
def test_tables_have_every_flag_of_those_that_are_left(page, name):
    module = pytest.importorskip(name)
    text = (HOUSE / "docs" / "python" / f"{page}.md").read_text()
    version = re.search(rf"flags of {name} (\d+\.\d+)", text)[1]
    if not module.__version__.startswith(version + "."):
        pytest.skip(f"the table is that of {name} {version}, and {module.__version__} is here")
    done = subprocess.run([sys.executable, "-m", name, "--help"], capture_output=True, text=True)
    flags = set(re.findall(r"^  (?:-\w(?: [A-Z_]+)?, )?(--[a-z0-9_-]+)", done.stdout, re.M))
    flags |= set(re.findall(r" / (--no-[a-z-]+)", done.stdout))
    assert len(flags) > 40, done
    table = re.search(rf"^\| {name} \| here \|\n(?:\|.*\n)+", text, re.M).group()
    left = " ".join(row.split(" | ", 1)[0] for row in table.splitlines())
    assert flags - set(re.findall(r"--[a-z0-9_-]+", left)) == set()
