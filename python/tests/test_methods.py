"""Every method reaches an application as it was sent."""

import time

import pytest

ASGI = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    told = f"{scope['method']} {scope['path']}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": told})
"""

WSGI = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}".encode()]
"""

NATIVE = """
from gustnado import App

app = App()

@app.route("/a")
def told(request):
    return f"{request.method} {request.path}"

@app.get("/got")
def got():
    return "got"
"""

METHODS = ["PROPFIND", "MKCOL", "PURGE", "QUERY", "M-SEARCH", "get", "M" * 64]


@pytest.mark.parametrize(
    ("program", "options"),
    [(ASGI, ()), (WSGI, ()), (WSGI, ("--threads", "2"))],
    ids=["asgi", "wsgi", "wsgi on threads"],
)
def test_applications_are_asked_about_every_method(run, program, options):
    server = run(program, *options, "--access-log", "access.log")
    for method in METHODS:
        answer = server.get("/a", method=method)
        assert (answer.status, answer.body) == (200, f"{method} /a".encode())
    assert server.get("*", method="OPTIONS").body == b"OPTIONS *"
    assert server.get("/a", method="M" * 65).status == 501
    # There are no tunnels.
    assert server.get("a:443", method="CONNECT").status == 405
    deadline = time.monotonic() + 10
    while '"PROPFIND /a HTTP/1.1" 200' not in (server.folder / "access.log").read_text():
        assert time.monotonic() < deadline, "it is logged as it was sent"
        time.sleep(0.02)


def test_native_handlers_are_asked_where_they_take_all(run):
    server = run(NATIVE)
    for method in METHODS:
        answer = server.get("/a", method=method)
        assert (answer.status, answer.body) == (200, f"{method} /a".encode())
        answer = server.get("/got", method=method)
        assert (answer.status, answer.fields["allow"]) == (405, "GET, HEAD, OPTIONS")
