"""An application by ASGI with a WebSocket for each test of `test_websocket.py`."""

PROGRAM = """
import asyncio, json

# What applications have seen, for `/seen`.
seen = []
# Tasks that outlast their application.
seen_later = []

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        scope["state"]["from"] = "the lifespan"
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        return await send({"type": "lifespan.shutdown.complete"})
    path = scope["path"]
    if scope["type"] == "http":
        body = json.dumps(seen).encode() if path == "/seen" else b"http"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        return await send({"type": "http.response.body", "body": body})
    assert scope["type"] == "websocket"
    await SOCKETS[path](scope, receive, send)

async def accepted(receive, send, **more):
    assert await receive() == {"type": "websocket.connect"}
    await send({"type": "websocket.accept", **more})

async def echo(scope, receive, send):
    await accepted(receive, send)
    while (message := await receive())["type"] == "websocket.receive":
        data = {key: message[key] for key in ("text", "bytes") if key in message}
        assert len(data) == 1
        await send({"type": "websocket.send", **data})
    seen.append(["echo", message])

async def scope_of(scope, receive, send):
    scope = {**scope, "headers": [[n.decode(), v.decode()] for n, v in scope["headers"]],
             "raw_path": scope["raw_path"].decode(),
             "query_string": scope["query_string"].decode()}
    await accepted(receive, send)
    await send({"type": "websocket.send", "text": json.dumps(scope, default=repr)})
    await receive()

async def chosen(scope, receive, send):
    await accepted(receive, send, subprotocol=scope["subprotocols"][-1],
                   headers=[(b"x-own", b"1"), (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"),
                            (b"sec-websocket-accept", b"forged")])

async def refuse(scope, receive, send):
    await receive()
    await send({"type": "websocket.close", "code": 4000})
    seen.append(["refused", await receive()])

async def deny(scope, receive, send):
    await receive()
    await send({"type": "websocket.http.response.start", "status": 401,
                "headers": [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]})
    for piece in (b"who ", b"are "):
        await send({"type": "websocket.http.response.body", "body": piece, "more_body": True})
    await send({"type": "websocket.http.response.body", "body": b"you?"})
    seen.append(["denied", await receive()])
    try:
        await send({"type": "websocket.accept"})
    except RuntimeError:
        seen.append(["denied", "no accept"])

async def closes(scope, receive, send):
    await accepted(receive, send)
    await send({"type": "websocket.send", "text": "before"})
    await send({"type": "websocket.close", "code": 4001, "reason": "enough"})
    seen.append(["closes", await receive()])
    for message in ({"type": "websocket.send", "text": "after"}, {"type": "websocket.close"}):
        try:
            await send(message)
        except RuntimeError as error:
            seen.append(["closes", message["type"]])

async def returns(scope, receive, send):
    await accepted(receive, send)

async def fails(scope, receive, send):
    await accepted(receive, send)
    raise ValueError("on purpose")

async def fails_first(scope, receive, send):
    raise ValueError("before anything")

async def leaves_a_task(scope, receive, send):
    async def waits():
        seen.append(["left", (await receive())["type"]])
    await receive()
    seen_later.append(asyncio.ensure_future(waits()))
    await asyncio.sleep(0.05)
    raise ValueError("before an answer")

async def answers_nothing(scope, receive, send):
    await receive()

async def late(scope, receive, send):
    await receive()
    await asyncio.sleep(0.2)
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": "late"})
    await receive()

async def waits_for_loss(scope, receive, send):
    await receive()
    seen.append(["waits", await receive()])
    try:
        await send({"type": "websocket.accept"})
    except OSError as error:
        seen.append(["waits", type(error).__name__])

async def two_receivers(scope, receive, send):
    await accepted(receive, send)
    first, second = asyncio.create_task(receive()), asyncio.create_task(receive())
    done = [(await first)["text"], (await second)["text"]]
    await send({"type": "websocket.send", "text": " ".join(done)})
    both = [asyncio.create_task(receive()) for _ in range(2)]
    ends = await asyncio.gather(*both, return_exceptions=True)
    seen.append(["two", [end if isinstance(end, dict) else type(end).__name__ for end in ends]])

async def timed(scope, receive, send):
    await accepted(receive, send)
    lost = 0
    for _ in range(20):
        try:
            await asyncio.wait_for(receive(), 0.005)
        except asyncio.TimeoutError:
            lost += 1
    await send({"type": "websocket.send", "text": str(lost)})
    # A time-out takes no message away.
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": "got " + message["text"]})

async def ticks(scope, receive, send):
    await accepted(receive, send)
    try:
        for number in range(10_000):
            await send({"type": "websocket.send", "text": str(number)})
            await asyncio.sleep(0.01)
    except OSError as error:
        seen.append(["ticks", type(error).__name__])
        seen.append(["ticks", await receive()])
        try:
            await receive()
        except OSError:
            seen.append(["ticks", "over"])

async def computes(scope, receive, send):
    import time
    await accepted(receive, send)
    for number in range(3):
        await send({"type": "websocket.send", "text": str(number)})
        time.sleep(0.3)

async def floods(scope, receive, send):
    await accepted(receive, send)
    sent = 0
    async def flood():
        nonlocal sent
        while True:
            await send({"type": "websocket.send", "bytes": bytes(100_000)})
            sent += 1
    task = asyncio.create_task(flood())
    await asyncio.sleep(1)
    seen.append(["floods", sent])
    await receive()
    seen.append(["floods", "goes on"])
    while (await receive())["type"] != "websocket.disconnect":
        pass
    task.cancel()

async def forms(scope, receive, send):
    await accepted(receive, send, headers=None, subprotocol=None)
    await send({"type": "websocket.send", "bytes": bytearray(b"ab"), "text": None})
    await send({"type": "websocket.send", "bytes": memoryview(b"cd")})
    await send({"type": "websocket.send", "bytes": None, "text": "ef"})
    await send({"type": "websocket.send", "text": ""})
    for wrong in ({"type": "websocket.send"}, {"type": "websocket.send", "text": b"x"},
                  {"type": "http.response.start", "status": 200}, {"no": "type"},
                  {"type": "websocket.accept"}, {"type": "websocket.close", "code": 1005}):
        try:
            await send(wrong)
            seen.append(["forms", f"{wrong} passed"])
        except (TypeError, ValueError, RuntimeError) as error:
            seen.append(["forms", type(error).__name__])
    await send({"type": "websocket.close"})

async def early(scope, receive, send):
    try:
        await send({"type": "websocket.send", "text": "too early"})
    except RuntimeError:
        seen.append(["early", "refused"])
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": "open"})
    assert (await receive())["type"] == "websocket.connect"
    await receive()

async def tidies_up(scope, receive, send):
    import sys
    await accepted(receive, send)
    await receive()
    await asyncio.sleep(0.4)
    print("tidied up", file=sys.stderr, flush=True)

SOCKETS = {"/" + f.__name__.replace("_", "-"): f for f in (
    echo, scope_of, chosen, refuse, deny, closes, returns, fails, fails_first, answers_nothing,
    leaves_a_task, late, waits_for_loss, two_receivers, timed, ticks, computes, floods, forms,
    early, tidies_up)}
"""
