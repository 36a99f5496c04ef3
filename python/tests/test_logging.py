"""The server's log and the application's: neither touches the other's."""

import json
import logging
import os

import pytest
from gustnado import _logs
from gustnado._options import SettingError
from gustnado._plan import Plan

BASIC = """
import logging
logging.basicConfig(level=logging.DEBUG, filename="my.log", format="%(levelname)s|%(message)s")
log = logging.getLogger("shop")
assert logging.getLogger("gustnado").propagate is False

def app(environ, start_response):
    log.debug("it is asked for")
    log.warning("it is asked for")
    if environ["PATH_INFO"] == "/fail":
        raise KeyError("lost")
    start_response("200 OK", [])
    return []
"""

# What Django does: a handler of its own for its own loggers, which propagate.
DJANGO = """
import logging, logging.config
logging.config.dictConfig({
    "version": 1,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"django": {"handlers": ["console"], "level": "INFO"}},
})

def app(environ, start_response):
    logging.getLogger("django.request").warning("Not Found: %s", environ["PATH_INFO"])
    if environ["PATH_INFO"] == "/fail":
        raise KeyError("lost")
    start_response("404 Not Found", [])
    return []
"""


def test_an_application_s_basic_configuration_works_whole(run, tmp_path):
    server = run(BASIC)
    assert server.get("/").status == 200 and server.get("/fail").status == 500
    said = "DEBUG|it is asked for\nWARNING|it is asked for\n"
    assert (tmp_path / "my.log").read_text() == 2 * said
    server.wait_for_words("KeyError: 'lost'")
    assert "shop" not in server.said() and "ERROR gustnado.error:" in server.said()


def test_a_warning_appears_once(run):
    server = run(DJANGO)
    assert server.get("/nope").status == 404
    # And the server is not silenced, though that configuration names its loggers nowhere.
    assert server.get("/fail").status == 500
    server.wait_for_words("KeyError: 'lost'")
    assert server.said().count("Not Found: /nope") == 1


def test_the_root_logger_is_never_touched():
    root, own = logging.getLogger(), logging.getLogger("gustnado")
    before = (list(root.handlers), root.level)
    kept = (list(own.handlers), own.propagate, own.level)
    try:
        own.handlers = []
        _logs.set_up(Plan("x:y", log_level="critical"))
        assert (list(root.handlers), root.level) == before
        assert own.level == logging.CRITICAL and not own.propagate and len(own.handlers) == 1
        # A program that has configured it is left alone.
        own.handlers, own.propagate = [logging.NullHandler()], True
        own.setLevel("ERROR")
        _logs.set_up(Plan("x:y", log_level="debug"))
        assert len(own.handlers) == 1 and own.propagate and own.level == logging.ERROR
    finally:
        own.handlers, own.propagate = kept[0], kept[1]
        own.setLevel(kept[2])


CONFIG = {
    "version": 1,
    "formatters": {"plain": {"format": "MINE %(name)s %(levelname)s %(message)s"}},
    "handlers": {"file": {"class": "logging.FileHandler", "filename": "its.log",
                          "formatter": "plain"}},
    "loggers": {"gustnado": {"handlers": ["file"], "level": "INFO", "propagate": False}},
}
INI = """
[loggers]
keys=root,gustnado
[handlers]
keys=file
[formatters]
keys=plain
[logger_root]
handlers=
[logger_gustnado]
qualname=gustnado
handlers=file
propagate=0
[handler_file]
class=FileHandler
args=("its.log",)
formatter=plain
[formatter_plain]
format=MINE %(name)s %(levelname)s %(message)s
"""


@pytest.mark.parametrize("name, text", [
    ("log.json", json.dumps(CONFIG)), ("log.yaml", json.dumps(CONFIG)), ("log.ini", INI)])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_configuration_of_ones_own(run, tmp_path, name, text, workers):
    if name.endswith(".yaml"):
        pytest.importorskip("yaml")
    (tmp_path / name).write_text(text)
    server = run(DJANGO, "--log-config", name, "--workers", workers)
    assert server.get("/fail").status == 500
    said = (tmp_path / "its.log").read_text()
    assert said.startswith("MINE gustnado.error ERROR ") and "KeyError: 'lost'" in said
    assert "KeyError" not in server.said()


@pytest.mark.parametrize("name, text, said", [
    ("nope.json", None, "No such file or directory; name a file that can be read"),
    ("nope.ini", None, "No such file or directory"),
    ("bad.json", "{", "Expecting property name"),
    ("bad.json", '{"version": 1, "handlers": {"x": {"class": "nope.No"}}}', "'x'"),
    ("bad.ini", "[loggers]\n", "it has no 'formatters'"),
])
def test_a_configuration_that_is_wrong_is_one_line(tmp_path, name, text, said):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(SettingError) as found:
        _logs._configure(str(tmp_path / name))
    assert said in str(found.value) and str(found.value).startswith("--log-config ")


@pytest.mark.parametrize("words, said", [
    (["--log-level", "CRITICAL"], False), (["--log-level", "trace"], True), ([], True)])
def test_levels(run, words, said):
    server = run(DJANGO, *words)
    assert server.get("/fail").status == 500
    assert server.end() == 0
    assert ("KeyError" in server.said()) is said


@pytest.mark.parametrize("workers", ["1", "2"])
def test_errors_go_to_a_file_which_is_opened_anew(run, tmp_path, workers):
    import signal

    server = run(DJANGO.replace("raise", "print('to output'); raise"), "--error-logfile", "err.log",
                 "--capture-output", "--workers", workers)
    path = tmp_path / "err.log"
    wait_for(path, "listens on")
    assert server.get("/fail").status == 500
    wait_for(path, "KeyError: 'lost'")
    os.rename(path, tmp_path / "old.log")
    server.process.send_signal(signal.SIGUSR1)
    wait_for(path, "")
    # (Each process opens it for itself.)
    for _ in range(100):
        assert server.get("/fail").status == 500
        if "KeyError" in path.read_text():
            break
    wait_for(path, "KeyError: 'lost'")
    assert server.end() == 0 and server.said() == ""
    assert "to output" in (tmp_path / "old.log").read_text() + path.read_text()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_file_that_cannot_be_opened_anew_is_written_on(run, tmp_path, workers):
    import signal

    folder = tmp_path / "logs"
    folder.mkdir()
    server = run(DJANGO, "--error-log", "logs/err.log", "--access-log", "access.log", "--workers",
                 workers)
    wait_for(folder / "err.log", "listens on")
    folder.rename(tmp_path / "old")
    (tmp_path / "access.log").rename(tmp_path / "old.access.log")
    server.process.send_signal(signal.SIGUSR1)
    path = tmp_path / "old/err.log"
    wait_for(path, "USR1: --error-log logs/err.log: No such file or directory")
    assert path.read_text().count("the old file is written on") >= 1
    wait_for(tmp_path / "access.log", "")
    assert server.get("/fail").status == 500
    wait_for(path, "KeyError: 'lost'")
    assert server.end() == 0


def wait_for(path, words):
    import time

    deadline = time.monotonic() + 10
    while not path.exists() or words not in path.read_text():
        assert time.monotonic() < deadline, path.exists() and path.read_text()
        time.sleep(0.02)


def test_app_run_writes_times_and_levels(serve):
    server = serve("""
        import sys
        import gustnado
        app = gustnado.App()

        @app.get("/fail")
        def fail():
            raise KeyError("lost")

        app.run(port=int(sys.argv[1]))
        """)
    assert server.get("/fail").status == 500
    server.wait_for_words("KeyError: 'lost'")
    assert " ERROR gustnado.error: " in server.said()
