"""Settings of routes, from Python: passwords, compression, applications of a single page."""

import base64
import gzip
import json
import os
import time

import pytest

ASGI = """
import json

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("there is none")
    user = scope["extensions"].get("basic_auth", {}).get("user")
    body = json.dumps({"user": user, "text": "lorem ipsum " * 1000}).encode()
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": body})
"""

WSGI = """
import json

def app(environ, start_response):
    user = environ.get("REMOTE_USER")
    body = json.dumps({"user": user, "text": "lorem ipsum " * 1000}).encode()
    start_response("200 OK", [("Content-Type", "application/json")])
    return [body]
"""

NATIVE = """
import gustnado

app = gustnado.App()

@app.get("/")
def hello(request: gustnado.Request):
    return {"user": request.user, "text": "lorem ipsum " * 1000}
"""

SITE = """
import gustnado

app = gustnado.App()
app.files("/app", "./dist")
"""

# By `htpasswd -B`: the password is "password".
USERS = "ann:$2y$05$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe\n"


def basic(user, password):
    text = base64.b64encode(f"{user}:{password}".encode()).decode()
    return f"Authorization: Basic {text}\r\n"


@pytest.mark.parametrize("program", [ASGI, WSGI, NATIVE])
def test_applications_see_the_user_whose_password_was_verified(run, tmp_path, program):
    (tmp_path / "users").write_text(USERS)
    server = run(program, "--basic-auth", "users", "--basic-auth-realm", "here")
    for fields in ["", basic("ann", "wrong"), basic("eve", "password")]:
        answer = server.get("/", fields)
        assert answer.status == 401, fields
        assert answer.fields["www-authenticate"] == 'Basic realm="here", charset="UTF-8"'
    answer = server.get("/", basic("ann", "password"))
    assert answer.status == 200 and json.loads(answer.body)["user"] == "ann"


@pytest.mark.parametrize("program", [ASGI, WSGI, NATIVE])
def test_a_user_that_nobody_has_verified_is_none(run, program):
    answer = run(program).get("/", basic("ann", "password"))
    assert answer.status == 200 and json.loads(answer.body)["user"] is None


@pytest.mark.parametrize("program", [ASGI, WSGI, NATIVE])
def test_responses_of_applications_are_compressed_and_counted(run, program):
    server = run(program, "--compress", "on", "--stats-path", "/stats")
    plain = server.get("/")
    assert "content-encoding" not in plain.fields
    assert plain.fields["vary"].lower() == "accept-encoding"
    answer = server.get("/", "Accept-Encoding: gzip\r\n")
    assert answer.fields["content-encoding"] == "gzip"
    assert gzip.decompress(answer.body) == plain.body
    assert len(answer.body) * 10 < len(plain.body)
    deadline = time.monotonic() + 10
    # (A stream is counted when it has ended.)
    while (stats := json.loads(server.get("/stats").body))["compressions"] == 0:
        assert time.monotonic() < deadline, stats
        time.sleep(0.05)
    assert stats["responses_gzip"] == 1 and stats["compressions"] == 1
    assert stats["compress_bytes_in"] == len(plain.body)
    assert stats["compress_bytes_out"] == len(answer.body)


def test_a_folder_serves_an_application_of_a_single_page_over_releases(run, tmp_path):
    for release, script in [("one", "main.1f2c3b4a.js"), ("two", "main.9f8c7b6a.js")]:
        folder = tmp_path / "releases" / release / "assets"
        folder.mkdir(parents=True)
        (folder / script).write_text(f"{release}()")
        (folder.parent / "index.html").write_text(f"<title>{release}</title>")
    link = tmp_path / "dist"
    link.symlink_to("releases/one")
    server = run(SITE, "--spa", "--keep-old-assets", "1h", "--compress", "on")
    navigation = "Accept: text/html\r\n"
    page = server.get("/app/users/7", navigation)
    assert page.status == 200 and page.body == b"<title>one</title>"
    assert page.fields["cache-control"] == "no-cache"
    script = server.get("/app/assets/main.1f2c3b4a.js")
    assert script.status == 200
    assert script.fields["cache-control"] == "public, max-age=31536000, immutable"
    assert server.get("/app/assets/main.0a0b0c0d.js", navigation).status == 404
    assert server.get("/app/logo.png").status == 404
    (tmp_path / "next").symlink_to("releases/two")
    os.replace(tmp_path / "next", link)
    deadline = time.monotonic() + 10
    while server.get("/app/", navigation).body != b"<title>two</title>":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert server.get("/app/assets/main.9f8c7b6a.js").body == b"two()"
    assert server.get("/app/assets/main.1f2c3b4a.js").body == b"one()"
