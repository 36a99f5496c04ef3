"""One canonical path: what routes guard, and what applications get."""

import json
import random
import subprocess
import sys

import pytest
from gustnado import App

NATIVE = """
import sys, gustnado

app = gustnado.App()
app.files("/", "site")

@app.route("/private/{*rest}")
def private(rest):
    return 403, "guarded " + rest

@app.route("/a+b/{*rest}")
def other():
    return 403, "guarded"

@app.get("/echo/{name}")
def echo(request, name):
    return {"path": request.path, "raw": request.raw_path, "name": name,
            "is_under": request.is_under("/echo")}

@app.get("/proxy/{*rest}", merge_slashes=False)
def proxy(rest):
    return rest

app.run(port=int(sys.argv[1]))
"""

CHAINED = """
import sys, gustnado

app = gustnado.App()

@app.before(under="/%61rea/closed")
def guard(request):
    return 401, "closed"

@app.get("/{name}/closed/{page}")
def area(name, page):
    return f"open {name} {page}"

@app.get("/area/closed/./page")
async def page():
    return "open page"

app.run(port=int(sys.argv[1]))
"""

ASGI = """
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    text = f'{scope["path"]} {scope["raw_path"].decode()}'
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text.encode()})
"""

WSGI = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f'{environ["PATH_INFO"]} {environ["RAW_URI"]}'.encode()]
"""

SECRET = b"the secret"

GUARDED = """
/private/secret.txt //private/secret.txt ///private///secret.txt //private// /private/ /private/.
/./private/secret.txt //%70%72ivate/secret.txt /%70rivate/%73ecret.txt /private/%2e/secret.txt
http://h//private/secret.txt /a+b/secret.txt /a%2Bb/secret.txt //%61%2bb//secret.txt
""".split()


def spelling(path, chance):
    """One of many spellings of a path, all of which mean the same."""

    def letter(one):
        return chance.choice([one, one, f"%{ord(one):02x}", f"%{ord(one):02X}"])

    return "".join(
        chance.choice(["", "", "/", "/.", "/%2e", "//"]) + "/" + "".join(map(letter, part))
        for part in path.split("/")[1:]
    )


@pytest.fixture
def site(tmp_path):
    for place in ("private", "a+b"):
        (tmp_path / "site" / place).mkdir(parents=True)
        for name in ("secret.txt", "index.html"):
            (tmp_path / "site" / place / name).write_bytes(SECRET)
    (tmp_path / "site" / "open.txt").write_text("open")
    return tmp_path / "site"


def test_no_spelling_reaches_a_file_past_a_handler(serve, site):
    server = serve(NATIVE)
    chance = random.Random(14)
    paths = ["/private/secret.txt", "/a+b/secret.txt"]
    for target in GUARDED + [spelling(path, chance) for path in paths * 40]:
        answer = server.get(target)
        assert (answer.status, SECRET in answer.body) == (403, False), target
    assert server.get("/open.txt").body == b"open"
    assert server.get("/private/a%2Fb//c").body == b"guarded a/b/c"
    for target in ("/..", "/private/../open.txt", "/%2e%2e/open.txt", "/x/.%2E"):
        assert server.get(target).status == 400, target
    for target in ("/private%2fsecret.txt", "/%2fopen.txt", "/open.txt%00"):
        assert server.get(target).status == 404, target


def test_a_handler_is_told_the_path_that_routes_compare(serve, site):
    server = serve(NATIVE)
    answer = server.get("//%65cho/./a%2fb%20c")
    assert json.loads(answer.body) == {"path": "/echo/a%2Fb c", "raw": "//%65cho/./a%2fb%20c",
                             "name": "a/b c", "is_under": True}
    assert server.get("/proxy/https://example.org//x").body == b"https://example.org//x"


def test_what_runs_before_a_handler_is_not_got_round(serve):
    server = serve(CHAINED)
    for target in ("/area/closed/page", "//area//closed/page", "/%61rea/closed/page",
                   "/area/closed/x", "/./area/closed/%70age"):
        answer = server.get(target)
        assert (answer.status, answer.body) == (401, b"closed"), target
    assert server.get("/other/closed/x").body == b"open other x"


@pytest.mark.parametrize("program", [ASGI, WSGI])
def test_applications_are_told_what_was_sent(run, program):
    server = run(program)
    for target, path in [("//a/./%62", "//a/./b"), ("/a%2Fb", "/a/b"), ("/a//", "/a//")]:
        assert server.get(target).body.decode() == f"{path} {target}", target
    assert server.get("/a/../b").status == 400


def test_a_path_without_its_leading_slash_is_an_error_at_once():
    app = App()
    for add in (app.get, app.post, app.route, lambda path: app.files(path, "."),
                lambda path: app.before(len, under=path)):
        with pytest.raises(ValueError, match="begin it with /"):
            add("hello")
    with pytest.raises(ValueError, match="leave that part out"):
        app.get("/a/../b")


def test_a_mount_without_its_leading_slash_does_not_start(tmp_path):
    (tmp_path / "program.py").write_text(
        "import gustnado\napp = gustnado.App()\n"
        "app._folders.append(('static', '.', []))\napp.run(port=0)\n")
    ended = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True,
                           text=True, timeout=30)
    assert "begin it with /" in ended.stderr, ended.stderr
