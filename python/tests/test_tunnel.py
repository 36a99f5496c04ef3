"""CONNECT: no application gets a request for a tunnel."""

import pytest

ASGI = """
import sys
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    print("it was asked", file=sys.stderr, flush=True)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"asked"})
"""

WSGI = """
import sys
def app(environ, start_response):
    print("it was asked", file=sys.stderr, flush=True)
    start_response("200 OK", [])
    return [b"asked"]
"""

NATIVE = """
import gustnado, sys
app = gustnado.App()

@app.route("/")
{kind} any(request):
    print("it was asked", file=sys.stderr, flush=True)
    return "asked"
"""

APPLICATIONS = {
    "asgi": (ASGI, ()),
    "wsgi": (WSGI, ()),
    "wsgi with threads": (WSGI, ("--threads", "2")),
    "function": (NATIVE.replace("{kind}", "def"), ()),
    "function of nothing": (NATIVE.replace("{kind}", "def").replace("(request)", "()"), ()),
    "coroutine": (NATIVE.replace("{kind}", "async def"), ()),
}


@pytest.mark.parametrize("name", APPLICATIONS)
def test_a_tunnel_is_refused_before_the_application_is_asked(run, name):
    program, options = APPLICATIONS[name]
    server = run(program, *options)
    bodies = ("\r\n", "Content-Length: 2\r\n\r\nab",
              "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n")
    for body in bodies:
        asked = f"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n{body}"
        # What is behind it is no request: the connection ends.
        came = server.ask(asked.encode() + b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert came.startswith(b"HTTP/1.1 405 "), came
        assert came.count(b"HTTP/1.1 ") == 1 and b"\r\nConnection: close\r\n" in came, came
    assert "it was asked" not in server.said()
    assert server.get("/").body == b"asked"


def test_a_handler_for_tunnels_is_refused(run):
    server = run(
        """
        import gustnado
        app = gustnado.App()
        app.route("/", "CONNECT")(lambda: "a tunnel")
        """,
        waits=False,
    )
    assert server.process.wait(10) == 2
    assert "found CONNECT, which requests a tunnel" in server.said()
