"""`App.websocket`: WebSockets of handlers, over HTTP/1.1, TLS and HTTP/2."""

import json
import time

import gustnado
import pytest
import websocket_site
from websocket_link import CARRIERS, WebSocketLink
from websocket_site import LOOPS

PROGRAM = """
import asyncio, sys, gustnado

app = gustnado.App()
seen = []

@app.get("/seen")
async def seen_so_far():
    return seen

@app.websocket("/echo")
async def echo(socket):
    async for message in socket:
        await socket.send(message)
    seen.append(["echo", socket.close_code, socket.close_reason])

@app.websocket("/told/{room}/{*rest}", subprotocols=["v2", "v1"])
async def told(socket, room, rest):
    request = socket.request
    assert socket.request is request
    await socket.send(f"{room} {rest} {request.query_value('name')} {request.header('x-odd')} "
                      f"{socket.subprotocol} {socket.close_code} {socket!r}")

@app.get("/both")
def page():
    return "a page"

@app.websocket("/both")
async def both(socket):
    await socket.send("a socket")

@app.post("/posted")
def posted():
    return "posted"

@app.websocket("/posted")
async def posted_socket(socket):
    await socket.send("not posted")

@app.websocket("/receives")
async def receives(socket):
    try:
        while True:
            message = await socket.receive()
            await socket.send(repr(message))
    except gustnado.ClientDisconnected as error:
        seen.append(["receives", str(error)])
    try:
        await socket.send("too late")
    except gustnado.ClientDisconnected:
        seen.append(["receives", "too late"])
    raise ValueError("after the end")

@app.websocket("/closes")
async def closes(socket):
    await socket.send("before")
    socket.close(4000, "enough")
    async for message in socket:
        seen.append(["closes", message])
    seen.append(["closes", socket.close_code, socket.close_reason])
    await socket.close()
    for wrong in (lambda: socket.send("after"), lambda: socket.close(1005),
                  lambda: socket.send(5)):
        try:
            await wrong()
        except (RuntimeError, ValueError, TypeError) as error:
            seen.append(["closes", type(error).__name__])

@app.websocket("/fails")
async def fails(socket):
    await socket.send("before")
    raise ValueError("on purpose")

@app.websocket("/kinds")
async def kinds(socket):
    await socket.send(bytearray(b"ab"))
    await socket.send(memoryview(b"cd"))
    assert socket.try_send("ef")

@app.websocket("/slow")
async def slow(socket):
    sent = 0
    while socket.try_send(bytes(100_000)):
        sent += 1
        await asyncio.sleep(0)
    seen.append(["slow", sent])
    socket.close(1013, "too slow")

@app.websocket("/heedless")
async def heedless(socket):
    sent = 0
    try:
        for sent in range(1_000_000):
            socket.send(bytes(1_000_000))
    except RuntimeError as error:
        seen.append(["heedless", sent, str(error)])

@app.websocket("/cancels")
async def cancels(socket):
    async def send():
        await socket.send(bytes(1_000))
    while socket.try_send(bytes(100_000)):
        pass
    for _ in range(40_000):
        task = asyncio.ensure_future(send())
        await asyncio.sleep(0)
        task.cancel()
    seen.append(["cancels", True])
    socket.close(1013, "too slow")

@app.websocket("/own", origins=["https://friend.example"])
async def own(socket):
    await socket.send("open")

@app.websocket("/any", origins=["*"], message_bytes_max=100)
async def any_page(socket):
    async for message in socket:
        await socket.send("open")

@app.websocket("/private/plain")
async def private(socket):
    await socket.send("come in")

@app.before(under="/private")
async def guard(request):
    await asyncio.sleep(0.001)
    if request.header("authorization") != "Bearer a":
        return 401, gustnado.Response("who?", headers={"WWW-Authenticate": "Bearer"})

@app.websocket("/plainly/guarded")
async def plainly(socket):
    await socket.send("come in")

@app.before(under="/plainly")
def plain_guard(request):
    if request.query_value("key") == "none":
        raise ValueError("no key")
    if request.query_value("key") != "a":
        return 403, "no"
"""


class Site(websocket_site.Site):
    def seen(self, name, count):
        deadline = time.monotonic() + 10
        while True:
            found = [what for who, *what in json.loads(self.clear.get("/seen").body)
                     if who == name]
            if len(found) >= count:
                return found
            assert time.monotonic() < deadline, (found, self.clear.said())
            time.sleep(0.02)


@pytest.fixture(scope="module", params=LOOPS)
def site(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("native")
    with Site.serving(folder, PROGRAM, request.param) as site:
        yield site


@pytest.mark.parametrize("carrier", CARRIERS)
def test_messages_come_back(site, carrier):
    with site.open("/echo", carrier=carrier) as link:
        for message in ("hello", "", "\u20ac", b"\x00\xff", b"", "x" * 70_000, bytes(200_000)):
            link.send(message)
            assert link.receive() == message
        for number in range(100):
            link.send(str(number))
        assert [link.receive() for _ in range(100)] == [str(number) for number in range(100)]
        assert link.close(4003, "bye").code == 4003
    if carrier in ("plain", "h2c"):
        assert [4003, "bye"] in site.seen("echo", 1)


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_handler_knows_its_request(site, carrier):
    fields = [("X-Odd", "1"), ("Sec-WebSocket-Protocol", "v1, v2")]
    with site.open("/told/a%20b/c/d?name=e", fields, carrier) as link:
        assert link.answer.fields["sec-websocket-protocol"] == "v2"
        assert link.receive() == "a b c/d e 1 v2 None <WebSocket>"
        assert link.receive().code == 1000


def test_a_path_may_have_a_page_and_a_websocket(site):
    assert site.clear.get("/both").body == b"a page"
    with site.open("/both") as link:
        assert link.receive() == "a socket"
    assert site.clear.post("/posted", b"").body == b"posted"
    with site.open("/posted") as link:
        assert link.receive() == "not posted"


def test_who_asks_for_no_websocket_gets_426(site):
    answer = site.clear.get("/echo")
    assert (answer.status, answer.fields["upgrade"]) == (426, "websocket")


def test_the_end_is_an_exception_for_who_receives(site):
    with site.open("/receives") as link:
        link.send("a")
        link.send(b"b")
        assert [link.receive(), link.receive()] == ["'a'", "b'b'"]
        link.close(3000, "well")
    seen = site.seen("receives", 2)[-2:]
    assert seen == [["the WebSocket is closed: 3000 well"], ["too late"]]
    # What it raises then is the client's doing.
    assert "after the end" not in site.clear.said()


def test_a_handler_closes(site):
    before = len(site.seen("closes", 0))
    with site.open("/closes") as link:
        assert link.receive() == "before"
        end = link.receive()
        assert (end.code, end.reason) == (4000, "enough")
    assert site.seen("closes", before + 4)[before:] == [
        [4000, "enough"], ["RuntimeError"], ["ValueError"], ["TypeError"]]


def test_a_handler_that_fails_closes_with_1011(site):
    with site.open("/fails") as link:
        assert link.receive() == "before"
        assert link.receive().code == 1011
    site.clear.wait_for_words("fails has failed")
    site.clear.wait_for_words("ValueError: on purpose")


def test_kinds_of_messages(site):
    with site.open("/kinds") as link:
        assert [link.receive() for _ in range(3)] == [b"ab", b"cd", "ef"]


def test_a_client_that_is_too_slow_is_noticed(site):
    before = len(site.seen("slow", 0))
    with site.open("/slow") as link:
        sent = site.seen("slow", before + 1)[before][0]
        assert 10 <= sent <= 200
        for _ in range(sent):
            assert link.receive() == bytes(100_000)
        assert link.receive().code == 1013


def test_a_program_that_awaits_no_send_is_stopped(site):
    before = len(site.seen("heedless", 0))
    with site.open("/heedless"):
        sent, words = site.seen("heedless", before + 1)[before]
    assert 64 <= sent <= 80 and words.endswith("sends wait until the client takes more: await them")


def test_sends_that_are_cancelled_are_not_kept(site):
    before = len(site.seen("cancels", 0))
    with site.open("/cancels"):
        assert site.seen("cancels", before + 1)[before] == [True]


@pytest.mark.parametrize(("path", "origin", "status"), [
    ("/own", None, 101), ("/own", "http://localhost", 101), ("/own", "https://friend.example", 101),
    ("/own", "https://foe.example", 403), ("/echo", "https://friend.example", 403),
    ("/any", "https://foe.example", 101), ("/any", "null", 101), ("/own", "null", 403),
])
def test_pages_of_other_hosts_may_open_none(site, path, origin, status):
    fields = [("Origin", origin)] if origin else []
    with site.open(path, fields) as link:
        assert link.answer.status == status


def test_a_message_may_be_so_long(site):
    with site.open("/any") as link:
        link.send("x" * 100)
        assert link.receive() == "open"
        link.send("x" * 101)
        assert link.receive().code == 1009


@pytest.mark.parametrize("carrier", CARRIERS)
def test_what_runs_before_may_refuse(site, carrier):
    with site.open("/private/plain", carrier=carrier) as link:
        assert (link.answer.status, link.answer.body) == (401, b"who?")
        assert link.answer.fields["www-authenticate"] == "Bearer"
    with site.open("/private/plain", [("Authorization", "Bearer a")], carrier) as link:
        assert link.receive() == "come in"
    for key, status in (("b", 403), ("none", 500)):
        with site.open(f"/plainly/guarded?key={key}", carrier=carrier) as link:
            assert link.answer.status == status
    with site.open("/plainly/guarded?key=a", carrier=carrier) as link:
        assert link.receive() == "come in"


def test_the_end_of_a_server_closes(run):
    server = run(PROGRAM)
    with WebSocketLink(server.port, "/echo") as link:
        link.send("a")
        assert link.receive() == "a"
        server.process.terminate()
        assert link.receive().code == 1001
        assert server.process.wait(10) == 0


@pytest.mark.parametrize(("function", "options", "error", "words"), [
    (lambda socket: None, {}, TypeError, "expected a coroutine function"),
    ("none", {}, TypeError, "expected the WebSocket as the first parameter"),
    ("one", {"subprotocols": "v1"}, TypeError, "expected a list"),
    ("one", {"subprotocols": ["a b"]}, ValueError, "expected a token"),
    ("one", {"origins": "*"}, TypeError, "expected a list"),
    ("one", {"message_bytes_max": 0}, ValueError, "expected a number of bytes"),
])
def test_mistakes_are_told_at_once(function, options, error, words):
    async def none(): ...

    async def one(socket): ...

    function = {"none": none, "one": one}.get(function, function)
    with pytest.raises(error, match=words):
        gustnado.App().websocket("/", **options)(function)
