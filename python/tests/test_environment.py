"""Variables that are settings: GUSTNADO_*, PORT, WEB_CONCURRENCY, and files of them."""

import io
import json
import os
import subprocess
import sys

import pytest
from gustnado import _command_line
from gustnado._environment import assignments
from gustnado._options import FIT, SettingError
from gustnado._plan import arguments_of, plan_of

TELLS = """
import gustnado
app = gustnado.App()

@app.post("/")
async def length(request):
    return str(len(await request.read()))

if __name__ == "__main__":
    app.run(port=PORT)
"""


def planned(words, environ):
    found = _command_line.Arguments([*words.split(), "main:app"])
    return plan_of(found.app, found.given, found.weak, environ)


@pytest.mark.parametrize("words, environ, field, value", [
    ("", {"WEB_CONCURRENCY": "3"}, "workers", 3),
    ("", {"WEB_CONCURRENCY": "3", "GUSTNADO_WORKERS": "2"}, "workers", 2),
    ("--workers 1", {"WEB_CONCURRENCY": "3", "GUSTNADO_WORKERS": "2"}, "workers", 1),
    ("", {"GUSTNADO_LOG_LEVEL": "DEBUG"}, "log_level", "debug"),
    ("", {"GUSTNADO_RELOAD": "yes", "GUSTNADO_RELOAD_DIR": "a,b"}, "reload_dirs", ["a", "b"]),
    ("", {"GUSTNADO_FACTORY": "1"}, "factory", True),
    ("", {"GUSTNADO_TIMEOUT_GRACEFUL_SHUTDOWN": "3s"}, "grace", 3.0),
    ("", {"PORT": "9000"}, "settings", {"port": "9000"}),
    ("", {"PORT": "9000", "GUSTNADO_PORT": "9001"}, "settings", {"port": "9001"}),
    ("--port 81", {"PORT": "9000", "GUSTNADO_PORT": "9001"}, "settings", {"port": "81"}),
    ("--bind :81", {"PORT": "9000"}, "settings", {"listen": "0.0.0.0:81"}),
    ("", {"GUSTNADO_BIND": "127.0.0.1:1,:2", "PORT": "5"}, "settings",
     {"listen": "127.0.0.1:1,0.0.0.0:2"}),
    ("--port 81", {"GUSTNADO_LISTEN": "127.0.0.1:1"}, "settings", {"port": "81"}),
    ("", {"GUSTNADO_FORWARDED_ALLOW_IPS": "10.0.0.1,unix"}, "settings",
     {"forwarded-allow-ips": "10.0.0.1,unix"}),
    ("--proxy-headers", {"GUSTNADO_FORWARDED_ALLOW_IPS": "10.0.0.1"}, "settings",
     {"forwarded-allow-ips": "10.0.0.1"}),
    ("--no-access-log", {"GUSTNADO_ACCESS_LOG": "-"}, "settings", {"access-log": ""}),
    ("", {"GUSTNADO_TIMEOUT_KEEP_ALIVE": "0"}, "settings", {"max-requests-per-connection": "1"}),
])
def test_a_flag_is_over_a_variable_which_is_over_the_default(words, environ, field, value):
    plan, warnings = planned(words, environ)
    assert getattr(plan, field) == value
    assert all("takes precedence" in line for line in warnings)


def test_an_argument_is_over_a_variable():
    environ = {"GUSTNADO_PORT": "9001", "GUSTNADO_WORKERS": "2"}
    plan, _ = plan_of(object(), arguments_of({"port": 81}), None, environ)
    assert plan.settings == {"port": "81"} and plan.workers == 2


def test_every_setting_has_a_variable():
    for option in FIT.values():
        if option.read is None and option.name not in ("listen", "host", "port", "uds"):
            is_text = option.default == "none" and not option.takes.startswith("one of")
            value = "x" if is_text else option.default
            value = "/x" if option.name.endswith("-path") else value
            value = {"access-log": "-", "acme": "example.org",
                     "acme-email": "me@example.org", "forwarded-allow-ips": "unix",
                     "proxy-allow-from": "unix", "try-files": "$uri", "forbidden": "*.bak",
                     "mime": "wasm=application/wasm", "compress-types": "text/*",
                     "allow": "unix", "deny": "unix", "cors": "https://example.org",
                     "error-page": "404=404.html", "index": "index.html"}.get(option.name, value)
            plan, warnings = planned("", {option.variable: value})
            assert option.name in plan.settings and not warnings, option.name


@pytest.mark.parametrize("environ, said", [
    ({"GUSTNADO_WORKRES": "2"},
     "GUSTNADO_WORKRES is no setting: ignored; did you mean GUSTNADO_WORKERS?"),
    ({"GUSTNADO_QUITE_UNKNOWN_THING": "2"}, "`gustnado run --help` lists them all"),
    ({"GUSTNADO_ROOT": "x"}, "GUSTNADO_ROOT: ignored; the application serves every path"),
    ({"GUSTNADO_CONFIG": "site.toml"}, "reads no configuration file"),
    ({"GUSTNADO_PORT": "tcp://10.1.2.3:80"}, "GUSTNADO_PORT is a Kubernetes service link"),
])
def test_what_is_no_setting_is_warned_about(environ, said):
    plan, warnings = planned("", environ)
    assert len(warnings) == 1 and said in warnings[0] and plan.settings == {}


def test_links_of_services_and_others_variables_are_no_settings():
    environ = {"GUSTNADO_SERVICE_HOST": "x", "GUSTNADO_PORT_80_TCP_ADDR": "x", "HOME": "/"}
    assert planned("", environ)[1] == []


@pytest.mark.parametrize("environ, said", [
    ({"GUSTNADO_PORT": "99999"}, "GUSTNADO_PORT: expected a whole number from 0 to 65535, found "
     '"99999"; unset it for 8080'),
    ({"PORT": "eighty"}, "PORT: expected a whole number"),
    ({"WEB_CONCURRENCY": "0"}, "WEB_CONCURRENCY: expected a whole number from 1 to 1024, or auto"),
    ({"GUSTNADO_HEADER_TIMEOUT": "abc"}, "GUSTNADO_HEADER_TIMEOUT: expected a duration"),
])
def test_a_refusal_names_the_variable(environ, said):
    with pytest.raises(SettingError) as found:
        planned("", environ)
    assert said in str(found.value)


def test_both_ways_in_read_them(tmp_path, run, serve, monkeypatch):
    monkeypatch.setenv("GUSTNADO_LIMIT_BODY_BYTES", "10")
    by_name = run(TELLS)
    by_program = serve("import sys\n" + TELLS.replace("PORT", "int(sys.argv[1])"))
    for server in (by_name, by_program):
        assert server.post("/", b"x" * 10).body == b"10"
        assert server.post("/", b"x" * 11).status == 413
    flagged = run(TELLS, "--limit-body-bytes", "20")
    assert flagged.post("/", b"x" * 11).body == b"11"


def test_a_file_of_variables(tmp_path, run):
    (tmp_path / "one.env").write_text('# what it needs\nexport A="a b" # so\nB=${A}!\nHOME=gone\n')
    (tmp_path / "two.env").write_text("GUSTNADO_SERVER_NAME=breeze\n")
    server = run("""
        import json, os
        seen = {name: os.environ.get(name) for name in ("A", "B", "C", "HOME")}

        def app(environ, start_response):
            start_response("200 OK", [])
            return [json.dumps(seen).encode()]
        """, "--env-file", "one.env", "--env-files", "two.env", "-e", "C=c")
    answer = server.get("/")
    seen = json.loads(answer.body)
    assert seen == {"A": "a b", "B": "a b!", "C": "c", "HOME": os.environ["HOME"]}
    assert answer.fields["server"] == "breeze"


LINES = [
    ("A=1\n\n# c\nexport B = two words # c\n", {"A": "1", "B": "two words"}),
    ("C='a $x # b'\nD=\"q\\n\\\"x\\\"\"\nE=\nF=a#b", {
        "C": "a $x # b", "D": 'q\n"x"', "E": "", "F": "a#b"}),
    ('G="two\nlines"\r\nH=${NO:-other}\r\n', {"G": "two\nlines", "H": "other"}),
    ("I= a \nJ='q'#c\nK=\"\"\n\n\n  L=1", {"I": "a", "J": "q", "K": "", "L": "1"}),
    ("M=${A}x\nA=1\nN=${A}2", {"M": "x", "A": "1", "N": "12"}),
]


@pytest.mark.parametrize("text, found", LINES)
def test_lines_are_read(text, found):
    assert dict(assignments(text, "file", {})) == found


@pytest.mark.parametrize("text, found", LINES)
def test_they_are_read_as_uvicorn_reads_them(text, found):
    dotenv = pytest.importorskip("dotenv")
    assert dict(dotenv.dotenv_values(stream=io.StringIO(text))) == found


def test_what_is_no_line_is_named():
    with pytest.raises(SettingError, match=r'file:2: expected NAME=value, found "what is this"'):
        dict(assignments("A=1\nwhat is this\n", "file", {}))
    done = subprocess.run([sys.executable, "-m", "gustnado", "run", "--env-file", "/nope", "a:b"],
                          capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "--env-file /nope: No such file" in done.stderr
