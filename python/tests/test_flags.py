"""Usual lines of Procfiles: flags of uvicorn, gunicorn and granian."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from gustnado import _command_line, _peers
from gustnado._options import FIT, OPTIONS, SettingError
from gustnado._plan import plan_of

DOCS = Path(__file__).parents[2] / "docs/python"


def plan_by(*words, environ=None):
    """What a command line comes to."""
    found = _command_line.Arguments([*words, "main:app"] if "main:app" not in words else words)
    return plan_of(found.app, found.given, found.weak, {} if environ is None else environ)[0]


def refusal(*words):
    with pytest.raises(SettingError) as found:
        plan_by(*words)
    return str(found.value)


# --- The 25 most used of each: accepted, with what comes of it in a plan.

SETTINGS = {
    # uvicorn
    "--host 0.0.0.0": {"host": "0.0.0.0"},
    "--port 8000": {"port": "8000"},
    "--uds /tmp/x.sock": {"listen": "unix:/tmp/x.sock"},
    "--fd 3": {"listen": "fd:3"},
    "--access-log": {"access-log": "-"},
    "--access-log a.log": {"access-log": "a.log"},
    "--no-access-log": {"access-log": ""},
    "--proxy-headers": {"forwarded-allow-ips": "127.0.0.1"},
    "--proxy-headers --forwarded-allow-ips *": {"forwarded-allow-ips": "*"},
    "--forwarded-allow-ips=10.0.0.0/8,unix --no-proxy-headers": {"forwarded-allow-ips": ""},
    "--no-server-header": {"server-name": ""},
    "--server-header --date-header --no-use-colors": {},
    "--backlog 2048": {"backlog": "2048"},
    "--timeout-keep-alive 5": {"timeout-keep-alive": "5"},
    "--timeout-keep-alive 0": {"max-requests-per-connection": "1"},
    "--http auto": {}, "--http h11": {}, "--http httptools": {}, "--http 1": {},
    # gunicorn
    "-b 0.0.0.0:8000": {"listen": "0.0.0.0:8000"},
    "-b :8000": {"listen": "0.0.0.0:8000"},
    "-b :8000 -b unix:/run/x -b [::1]:80": {"listen": "0.0.0.0:8000,unix:/run/x,[::1]:80"},
    "--bind=unix:///run/x.sock": {"listen": "unix:/run/x.sock"},
    "--bind fd://3": {"listen": "fd:3"},
    "--keep-alive 5": {"timeout-keep-alive": "5"},
    "--keep-alive 0": {"max-requests-per-connection": "1"},
    "--worker-connections 1000": {"connections-max": "1000"},
    "--access-logfile -": {"access-log": "-"},
    "--access-logfile a.log --access-logformat common":
        {"access-log": "a.log", "access-log-format": "common"},
    "--limit-request-line 4094": {"limit-target-bytes": "4094"},
    "--limit-request-fields 50": {"limit-header-fields": "50"},
    "--reuse-port --no-sendfile -R --worker-tmp-dir /dev/shm": {},
    # hypercorn
    "--certfile c --keyfile k --ca-certs a --verify-mode CERT_REQUIRED": {
        "tls-cert": "c", "tls-key": "k", "tls-client-ca": "a", "tls-client-auth": "required"},
    "--verify-mode CERT_OPTIONAL": {"tls-client-auth": "optional"},
    "--cert-reqs 0": {"tls-client-auth": "none"},
    # uvicorn, gunicorn and granian, for TLS
    "--ssl-certfile c --ssl-keyfile k --ssl-ca-certs a --ssl-cert-reqs 2": {
        "tls-cert": "c", "tls-key": "k", "tls-client-ca": "a", "tls-client-auth": "required"},
    "--certfile c --keyfile k --do-handshake-on-connect --suppress-ragged-eofs": {
        "tls-cert": "c", "tls-key": "k"},
    "--ssl-certificate c --ssl-ca a --ssl-crl r --ssl-client-verify --ssl-protocol-min tls1.3": {
        "tls-cert": "c", "tls-client-ca": "a", "tls-client-crl": "r",
        "tls-client-auth": "required", "tls-version-min": "1.3"},
    # granian
    "--http1-header-read-timeout 5000": {"header-timeout": "5000ms"},
    "--no-http1-keep-alive": {"max-requests-per-connection": "1"},
    "--respawn-failed-workers": {},
    "--no-log": {"quiet": "true"},
}

FIELDS = {
    # uvicorn
    "--workers 4": ("workers", 4), "-w4": ("workers", 4), "-w=4": ("workers", 4),
    "--reload": ("reload", True), "--reload-dir src": ("reload_dirs", ["src"]),
    "--loop uvloop": ("loop", "uvloop"), "--lifespan off": ("lifespan", "off"),
    "--ws none": ("ws", "none"), "--no-ws": ("ws", "none"), "--ws wsproto": ("ws", "auto"),
    "--interface asgi3": ("interface", "asgi"), "--interface WSGI": ("interface", "wsgi"),
    "--factory": ("factory", True), "--app-dir .": ("app_dir", "."),
    "--root-path /x": ("root_path", "/x"),
    "--log-level INFO": ("log_level", "info"), "--log-level trace": ("log_level", "debug"),
    "--log-level critical": ("log_level", "critical"), "--log-config l.json":
        ("log_config", "l.json"),
    "--limit-max-requests 1000": ("max_requests", 1000),
    "--limit-max-requests-jitter 10": ("max_requests_jitter", 10),
    "--timeout-graceful-shutdown 30": ("grace", 30.0),
    # gunicorn
    "-k uvicorn.workers.UvicornWorker": ("interface", "asgi"),
    "-k uvicorn_worker.UvicornWorker": ("interface", "asgi"),
    "--worker-class=gthread": ("interface", "wsgi"), "-k sync": ("interface", "wsgi"),
    "--threads 8": ("threads", 8),
    "-t 120": ("timeout", 120.0), "--timeout 0": ("timeout", 0.0), "-t30s": ("timeout", 30.0),
    "--graceful-timeout 30": ("grace", 30.0),
    "--max-requests 1000": ("max_requests", 1000),
    "--max-requests-jitter 50": ("max_requests_jitter", 50),
    "--error-logfile -": ("error_log", "-"), "--log-file e.log": ("error_log", "e.log"),
    "--capture-output": ("capture_output", True), "--preload": ("preload", True),
    "--pid x.pid": ("pid", "x.pid"), "-n site": ("name", "site"),
    "--asgi-loop asyncio": ("loop", "asyncio"), "--asgi-lifespan on": ("lifespan", "on"),
    "--log-config-json l.json": ("log_config", "l.json"),
    # hypercorn
    "-k uvloop": ("loop", "uvloop"), "--worker-class asyncio": ("loop", "asyncio"),
    # granian
    "--workers-lifetime 1h": ("max_lifetime", 3600.0),
    "--workers-max-rss 300": ("max_worker_rss", 300 << 20),
    "--max-worker-rss 300m": ("max_worker_rss", 300 << 20),
    "--workers-kill-timeout 20": ("grace", 20.0),
    "--url-path-prefix /x": ("root_path", "/x"),
    "--static-path-mount .": ("static", {"/static": "."}),
    "--reload-paths src": ("reload_dirs", ["src"]),
    "--pid-file x.pid": ("pid", "x.pid"), "--process-name site": ("name", "site"),
    "--no-factory": ("factory", False), "--no-reload": ("reload", False),
}


@pytest.mark.parametrize("words", SETTINGS)
def test_it_comes_to_settings_of_the_engine(words):
    assert plan_by(*words.split()).settings == SETTINGS[words]


@pytest.mark.parametrize("words", FIELDS)
def test_it_comes_to_a_plan(words):
    field, value = FIELDS[words]
    assert getattr(plan_by(*words.split()), field) == value


def test_max_memory_has_its_old_meaning_unless_the_new_flag_is_there():
    def planned(*words, environ=None):
        found = _command_line.Arguments([*words, "main:app"])
        return plan_of(found.app, found.given, found.weak, environ or {})

    plan, warnings = planned("--max-memory", "300m")
    assert plan.max_worker_rss == 300 << 20 and "max-memory" not in plan.settings
    assert len(warnings) == 1 and "say --max-worker-rss for that" in warnings[0]
    plan, warnings = planned(environ={"GUSTNADO_MAX_MEMORY": "300m"})
    assert plan.max_worker_rss == 300 << 20 and "GUSTNADO_MAX_WORKER_RSS" in warnings[0]
    plan, warnings = planned("--max-memory", "300m", "--max-worker-rss", "0")
    assert (plan.max_worker_rss, plan.settings["max-memory"], warnings) == (0, "300m", [])
    plan, warnings = planned("--max-memory", "auto")
    assert (plan.max_worker_rss, plan.settings["max-memory"], warnings) == (0, "auto", [])


@pytest.mark.parametrize("words, said", [
    ("--group www-data", "--user NAME:GROUP"),
    ("-c gunicorn.conf.py", "all settings are flags, variables such as GUSTNADO_WORKERS"),
    ("--config python:x", "arguments of gustnado.run"),
    ("-D", "the service manager's"), ("--pythonpath x", "--app-dir DIR, or the variable"),
    ("--ssl-keyfile-password k", "openssl pkey -in key.pem -out plain.pem"),
    ("--keyfile-password k", "openssl pkey -in key.pem -out plain.pem"),
    ("--quic-bind :443", "--quic-bind (hypercorn): none: HTTP/3 is not spoken; a proxy may use it"),
    ("--insecure-bind :80", "--bind http://HOST:PORT, next to --bind https://HOST:PORT"),
    ("--verify-mode CERT_SOME", "expected one of 0, 1, 2"), ("-k trio", "no other loops"),
    ("--read-timeout 5", "--header-timeout TIME and --body-timeout TIME"),
    ("--ciphers x", "AES-GCM and ChaCha20-Poly1305"), ("--debug", "--log-level debug"),
    ("--ssl-ciphers x", "AES-GCM and ChaCha20-Poly1305"), ("--ssl-version 2", "--tls-version-min"),
    ("--cert-reqs 3", "expected one of 0, 1, 2"),
    ("--ssl-protocol-min tls1.1", "no other is spoken"),
    ("-k gevent", 'uvicorn_worker.UvicornH11Worker, found "gevent"; there are no green threads'),
    ("--ws wsprot", "expected one of auto, none"), ("--http 2", "HTTP/1.1"),
    ("--interface asgi2", "ASGI 2 is not spoken"),
    ("--interface rsgi", "RSGI is granian's own"), ("--blocking-threads 4", "are --threads N"),
    ("--runtime-threads 2", "--workers N"), ("--backpressure 10", "--connections-max N"),
    ("--static-path-route /x", "--static /path=DIR, in place of both"),
    ("--header a:b", "a middleware"), ("--use-colors", "no colours"),
    ("--timeout-worker-healthcheck 5", "--timeout TIME"),
    ("--reload-include *.html", "Python files"), ("--metrics", "--metrics-path /metrics"),
    ("--worker-tmp-dir --quiet", "expected a value, found none"),
    ("-p x.pid", "-p: expected a port, from 0 to 65535, found \"x.pid\"; a file for the process's "
     "number is --pid FILE"),
    ("--workers-max 3", "an application runs on one thread of each process"),
    ("--root x", "for a folder next to it use --static /path=DIR"),
    ("--wibble-wobble", "no such flag; `gustnado run --help` lists them all"),
    ("--prot 80", "no such flag; did you mean --port?"),
])
def test_it_is_refused_with_a_reason(words, said):
    assert said in refusal(*words.split())


# --- The table is whole, and the documents are made of it.

def words_of(program):
    return [word for row in _peers.PROGRAMS[program] for word in row.words.split()]


@pytest.mark.parametrize("program", _peers.PROGRAMS)
def test_what_is_the_same_is_there(program):
    ours = {option.flag for option in FIT.values()} | {option.short for option in FIT.values()}
    ours |= {"-h", "--help", "-v", "--version"}
    assert len(words_of(program)) == len(set(words_of(program)))
    for row in _peers.PROGRAMS[program]:
        for word in row.words.split():
            assert row.kind != _peers.SAME or word in ours, word
            # This package's own flags would never be looked up.
            assert row.kind == _peers.SAME or word not in ours, word


def test_a_flag_is_the_same_whoever_s_it_is():
    for program in _peers.PROGRAMS:
        for row in _peers.PROGRAMS[program]:
            for word in row.words.split() if row.kind != _peers.SAME else ():
                first = _peers.BY_WORD[word]
                assert (first.kind, first.takes) == (row.kind, row.takes), word


def test_what_it_stands_for_is_there():
    for row in _peers.BY_WORD.values():
        for value in ("5", "auto", "none", "sync") if row.sets else ():
            try:
                for name, text, _ in row.sets(row.words.split()[0], value):
                    assert name in OPTIONS and isinstance(text, str)
            except SettingError:
                pass


@pytest.mark.parametrize("program", ["uvicorn", "gunicorn", "granian", "hypercorn"])
def test_no_flag_of_theirs_is_forgotten(program):
    """By the program's own help, where it is installed."""
    pytest.importorskip(program)
    done = subprocess.run([sys.executable, "-m", program, "--help"], capture_output=True, text=True,
                          timeout=30)
    theirs = set(re.findall(r"(?<![\w-])(--[a-z][\w-]*\w)", done.stdout))
    ours = {option.flag for option in FIT.values()}
    assert len(theirs) > 30 and not theirs - set(words_of(program)) - ours


@pytest.mark.parametrize("program, page", [
    ("uvicorn", "asgi.md"), ("granian", "asgi.md"), ("gunicorn", "wsgi.md")])
def test_the_documents_have_the_table(program, page):
    made = _peers.table(program)
    assert made in (DOCS / page).read_text(), (
        f"docs/python/{page} is not as `python -m gustnado._peers {program}` prints it")


# --- Arguments.

@pytest.mark.parametrize("words, app, access_log", [
    (["--access-log", "main:app"], "main:app", "-"),
    (["main:app", "--access-log"], "main:app", "-"),
    (["--access-log", "main:app", "--port", "80"], "main:app", "-"),
    (["--access-log", "a.log", "main:app"], "main:app", "a.log"),
    (["main:app", "--access-log", "a.log"], "main:app", "a.log"),
    (["--access-log", "-", "main:app"], "main:app", "-"),
    (["--access-log=a.log", "main:app"], "main:app", "a.log"),
    (["--access-log", "--port", "80", "main:app"], "main:app", "-"),
    (["--quiet", "true", "main:app"], "main:app", None),
    (["--port=80", "--", "main:app"], "main:app", None),
])
def test_an_application_is_not_taken_for_a_file(words, app, access_log):
    found = _command_line.Arguments(words)
    assert found.app == app
    assert dict.get(found.given, "access-log", [(None, "")])[0][0] == access_log


@pytest.mark.parametrize("words, said", [
    ("--port 99999", '--port: expected a whole number from 0 to 65535, found "99999"; leave it out '
     "for 8080"),
    ("--port -5", 'found "-5"'), ("--port 65536", 'found "65536"'),
    ("--bind 127.0.0.1:99999", "a port is a number from 0 to 65535"),
    ("--bind 127.0.0.1", "write its port behind a colon, as in 127.0.0.1:8080"),
    ("--bind 127.0.0.1:x", "a port is a number from 0 to 65535"),
    ("--listen :99999", "a port is a number from 0 to 65535"),
    ("--workers 0", "--workers: expected a whole number from 1 to 1024, or auto"),
    ("-w 9999", "-w: expected a whole number from 1 to 1024, or auto, found \"9999\""),
    ("--workers x", "expected a whole number from 1 to 1024, or auto, found \"x\""),
    ("--max-requests -5", '--max-requests: expected a whole number from 0, found "-5"'),
    ("--max-requests-jitter -3", "--max-requests-jitter: expected a whole number from 0"),
    ("--threads 0", "--threads: expected a whole number from 1"),
    ("--timeout-graceful-shutdown soon", "--timeout-graceful-shutdown: expected a time such as"),
    ("--header-timeout abc", "--header-timeout: expected a duration"),
    ("--static /x=. --static /x=..", "/x has the folder . already"),
    ("--static /x=/nope", "no folder at /nope"), ("--static x", "write it as --static"),
    ("--app-dir /nope", "no such folder"), ("--loop rloop", "expected one of auto, asyncio"),
    ("--umask 999", "--umask: expected a file mode"),
    ("--port --workers 2", "--port: expected a value, found none"),
    ("other:app", "one application is all that can be served"),
])
def test_what_is_wrong_is_said_with_the_remedy(words, said):
    assert said in refusal(*words.split())


def test_help_has_every_setting_friendly_ones_first():
    page = _command_line.page(is_whole=True)
    for option in FIT.values():
        assert re.search(rf"{option.flag}[ \n[]", page), option.flag
    groups = re.findall(r"^(\w[\w ]*):$", page, re.MULTILINE)
    assert groups[:5] == ["Application", "Address", "Processes", "Output", "Development"]
    assert max(map(len, page.splitlines())) <= 100
    assert "--workers-max" not in page.replace("--workers-max-rss", "") and "--root " not in page
    short = _command_line.page(is_whole=False)
    assert "--scheduler" in page and "--scheduler" not in short and "--port" in short


@pytest.mark.parametrize("words", [["help", "run"], ["run", "--help"]])
def test_help_is_found(words):
    done = subprocess.run([sys.executable, "-m", "gustnado", *words], capture_output=True,
                          text=True, timeout=30)
    assert done.returncode == 0 and "usage: gustnado run [OPTIONS] MODULE:NAME" in done.stdout


def test_the_command_s_help_has_run():
    done = subprocess.run([sys.executable, "-m", "gustnado", "--help"], capture_output=True,
                          text=True, timeout=30)
    assert done.returncode == 0 and "gustnado run" in done.stdout.split("\n\n")[0] + done.stdout
