"""A response that comes before the body was read leaves no byte of the body to be parsed as a
request: what follows on the connection is served as itself, or the connection is closed."""

import re

import pytest

FOLLOWER = b"GET /follower HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
# What a body may not become: a request, or the beginning of one that swallows the next.
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\nGET /smuggled HTTP/1.1\r\nX-Swallow: "
LARGE = SMUGGLED + b"x" * (300 << 10)

# Method, target and, where it is certain, the status.
KINDS = {
    "read": ("POST", "/read", 200),
    "unread": ("POST", "/unread", 200),
    "unread, later": ("POST", "/unread-later", 200),
    "unread, streamed": ("POST", "/streamed", 200),
    "half read": ("POST", "/half-read", 200),
    "not found": ("POST", "/absent", 404),
    "another method": ("PUT", "/read", 405),
    "raised": ("POST", "/raises", 500),
    "raised later": ("POST", "/raises-later", 500),
    "cancelled": ("POST", "/cancelled", 500),
    # (The application's, where there is one for every path.)
    "the server in general": ("OPTIONS", "*", None),
    "a tunnel": ("CONNECT", "a.example:80", None),
    "a head": ("HEAD", "/unread", None),
}

ASGI = """
import asyncio

async def answer(send, body, status=200, more=False):
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": body, "more_body": more})

async def read(receive):
    while (message := await receive())["more_body"]:
        pass

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    path = scope["path"]
    if path == "/follower":
        await answer(send, b"the follower")
    elif path == "/smuggled":
        await answer(send, b"smuggled")
    elif path == "/read" and scope["method"] == "POST":
        await read(receive)
        await answer(send, b"read")
    elif path == "/read":
        await answer(send, b"", 405)
    elif path == "/unread":
        await answer(send, b"unread")
    elif path == "/unread-later":
        await asyncio.sleep(0.001)
        await answer(send, b"unread")
    elif path == "/streamed":
        await answer(send, b"un", more=True)
        await asyncio.sleep(0.001)
        await send({"type": "http.response.body", "body": b"read"})
    elif path == "/half-read":
        await receive()
        await answer(send, b"half")
    elif path == "/raises":
        raise ValueError("it was raised")
    elif path == "/raises-later":
        await asyncio.sleep(0.001)
        raise ValueError("it was raised")
    elif path == "/cancelled":
        asyncio.current_task().cancel()
        await asyncio.sleep(0.001)
    else:
        await answer(send, b"", 404)
"""

WSGI = """
def app(environ, start_response):
    path, status, body = environ["PATH_INFO"], "200 OK", b"unread"
    if path == "/follower":
        body = b"the follower"
    elif path == "/smuggled":
        body = b"smuggled"
    elif path == "/read" and environ["REQUEST_METHOD"] == "POST":
        environ["wsgi.input"].read()
    elif path == "/read":
        status = "405 No"
    elif path == "/half-read":
        environ["wsgi.input"].read(10)
    elif path == "/streamed":
        start_response(status, [])
        return (piece for piece in (b"un", b"read"))
    elif path in ("/raises", "/raises-later"):
        raise ValueError("it was raised")
    elif path == "/cancelled":
        raise SystemError("it was cancelled")
    elif path == "/absent":
        status = "404 No"
    start_response(status, [])
    return [body]
"""

# Functions of the request, of nothing, and coroutines: the engine calls each in its own way.
NATIVE = """
import asyncio, gustnado

app = gustnado.App()

@app.get("/follower")
{follow} follower({request}):
    return "the follower"

@app.route("/smuggled")
{follow} smuggled({request}):
    return "smuggled"

@app.post("/read")
{follow} read({request}):
    {read}
    return "read"

@app.route("/unread")
{follow} unread({request}):
    return "unread"

@app.post("/unread-later")
{follow} unread_later({request}):
    {wait}
    return "unread"

@app.post("/streamed")
{follow} streamed({request}):
    {stream}

@app.post("/half-read")
{follow} half_read({request}):
    {half}
    return "half"

@app.post("/raises")
{follow} raises({request}):
    raise ValueError("it was raised")

@app.post("/raises-later")
{follow} raises_later({request}):
    {wait}
    raise ValueError("it was raised")

@app.post("/cancelled")
{follow} cancelled({request}):
    {cancel}
    {wait}
"""

WAITS = {
    "follow": "async def", "request": "request", "read": "await request.read()",
    "wait": "await asyncio.sleep(0.001)", "cancel": "asyncio.current_task().cancel()",
    "half": "await request.stream().__anext__()",
    "stream": "return gustnado.stream(iter([b'un', b'read']))",
}
PLAIN = {
    "follow": "def", "request": "request", "read": "request.body", "wait": "pass",
    "cancel": "raise SystemError", "half": "request.body[:10]", "stream": "return 'unread'",
}

FACES = {
    "asgi": (ASGI, ()),
    "wsgi": (WSGI, ()),
    "wsgi with threads": (WSGI, ("--threads", "2")),
    "functions": (NATIVE.format(**PLAIN), ()),
    "functions of nothing": (NATIVE.format(**{
        **PLAIN, "request": "", "read": "pass", "half": "pass"}), ()),
    "coroutines": (NATIVE.format(**WAITS), ()),
}


def chunked(body):
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def framings(body):
    """How a body is announced, and what is sent of it: with the head or behind it, together with
    the follower; or by a client that waits for 100."""
    length = f"Content-Length: {len(body)}\r\n"
    expect = "Expect: 100-continue\r\n"
    chunks = "Transfer-Encoding: chunked\r\n"
    return {
        "length": (length, body, False),
        "chunks": (chunks, chunked(body), False),
        "length, expecting": (expect + length, body, False),
        "chunks, expecting": (expect + chunks, chunked(body), False),
        "length, waiting": (expect + length, body, True),
        "chunks, waiting": (expect + chunks, chunked(body), True),
    }


def ask(server, head, body, waits, in_parts):
    """Sends a request with its follower. Returns all that comes, and whether it ended."""
    with server.connect(5) as link:
        came = b""
        try:
            if waits:
                link.sendall(head)
                came = link.recv(65536)
                # A client that got more than 100 keeps its body.
                is_asked = came.startswith(b"HTTP/1.1 100 ")
                link.sendall((body if is_asked else b"") + FOLLOWER)
            elif in_parts:
                link.sendall(head)
                link.sendall(body[:20])
                link.sendall(body[20:] + FOLLOWER)
            else:
                link.sendall(head + body + FOLLOWER)
        except (BrokenPipeError, ConnectionResetError):
            pass  # It was closed because of its unread body.
        try:
            while piece := link.recv(65536):
                came += piece
        except ConnectionResetError:
            pass
        except TimeoutError:
            return came, False
        return came, True


def answers(raw, is_head):
    """Returns statuses and contents of all final responses."""
    found = []
    while raw:
        head, _, raw = raw.partition(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        if status < 200:
            continue
        body = b""
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        if is_head and not found:
            pass
        elif length:
            count = int(length[1])
            body, raw = raw[:count], raw[count:]
        elif re.search(rb"(?i)\r\ntransfer-encoding: chunked", head):
            while True:
                size, _, raw = raw.partition(b"\r\n")
                count = int(size, 16)
                body, raw = body + raw[:count], raw[count + 2:]
                if count == 0:
                    break
        found.append((status, body))
    return found


def fault(came, is_over, kind):
    """What is wrong with what came; nothing, if all is well."""
    method, _, wanted = KINDS[kind]
    if not is_over:
        return f"it stayed open after {came[:100]!r}"
    found = answers(came, method == "HEAD")
    if not found:
        return "no answer came"
    # A client that is refused, or whose body is too large, gets that response.
    if wanted is not None and found[0][0] not in (wanted, 413):
        return f"{found[0][0]} in place of {wanted}"
    if found[1:] not in ([], [(200, b"the follower")]):
        return f"{str(found[1:])[:60]} came behind it"
    return None


@pytest.mark.parametrize("face", FACES)
def test_what_follows_a_body_is_answered_as_itself_or_not_at_all(run, face):
    program, options = FACES[face]
    server = run(program, "--limit-body-bytes", "1m", *options)
    wrong, kept = [], 0
    for kind, (method, target, _status) in KINDS.items():
        for size, body in (("small", SMUGGLED), ("large", LARGE)):
            for framing, (fields, sent, waits) in framings(body).items():
                head = f"{method} {target} HTTP/1.1\r\nHost: a.example:80\r\n{fields}\r\n"
                for in_parts in (False, True):
                    came, is_over = ask(server, head.encode(), sent, waits, in_parts)
                    kept += b"the follower" in came
                    found = fault(came, is_over, kind)
                    if found is not None:
                        wrong.append(f"{kind}, {size}, {framing}, {in_parts}: {found}")
    assert not wrong, "\n".join(wrong)
    # Closing always would be safe, too, and no server.
    assert kept > 20
