"""Who the client is behind a proxy, as applications of each kind see it."""

import json

import pytest

NATIVE = """
import gustnado

app = gustnado.App()

@app.get("/")
def told(request):
    return [request.client, request.scheme, request.public_host]
"""

LATER = NATIVE.replace("def told", "async def told")

ASGI = """
import json

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("there is none")
    fields = {name.decode(): value.decode() for name, value in scope["headers"]}
    text = json.dumps([scope["client"][0], scope["scheme"], fields["host"]]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text})
"""

WSGI = """
import json

def app(environ, start_response):
    start_response("200 OK", [])
    assert environ.get("REMOTE_PORT", "1") != "0"
    told = [environ["REMOTE_ADDR"], environ["wsgi.url_scheme"], environ["HTTP_HOST"]]
    return [json.dumps(told).encode()]
"""

KINDS = {
    "native": (NATIVE, ()), "native-later": (LATER, ()), "asgi": (ASGI, ()), "wsgi": (WSGI, ()),
    "wsgi-threads": (WSGI, ("--threads", "4")),
}
FIELDS = "X-Forwarded-For: 1.1.1.1, 192.0.2.9\r\nX-Forwarded-Proto: https\r\n"


@pytest.fixture(params=KINDS)
def run_kind(run, request):
    program, options = KINDS[request.param]
    return lambda *more: run(program, *options, *more)


def told(answer):
    assert answer.status == 200
    return json.loads(answer.body)[:2]


def test_a_proxy_that_is_believed_says_who_the_client_is(run_kind):
    server = run_kind("--forwarded-allow-ips", "127.0.0.1,10.0.0.0/8")
    assert told(server.get("/", FIELDS)) == ["192.0.2.9", "https"]
    assert told(server.get("/")) == ["127.0.0.1", "http"]


def test_nobody_is_believed_unless_that_was_said(run_kind):
    assert told(run_kind().get("/", FIELDS)) == ["127.0.0.1", "http"]
