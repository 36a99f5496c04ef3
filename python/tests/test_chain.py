"""What runs before and after handlers, and events."""

import json

import pytest
from gustnado._events import event_text

PROGRAM = """
import asyncio, sys, gustnado

app = gustnado.App()

@app.before
def note(request):
    order.append("before")

@app.before(under="/secret")
async def guard(request):
    await asyncio.sleep(0)
    if request.header("authorization") != "open sesame":
        return 401, gustnado.Response("who are you?", headers={"WWW-Authenticate": "Magic"})

@app.after
def sign(request, response):
    response.add_header("X-Order", ",".join([*order, "after"]))
    order.clear()

@app.after(under="/swap")
def swap(request, response):
    return response.status, "swapped " + response.header("x-order")

order = []

@app.get("/")
def plain():
    order.append("handler")
    return "plain"

@app.get("/secret/{name}")
def secret(name):
    return {"name": name}

@app.get("/secrets")
def secrets():
    return "no secret"

@app.get("/swap")
async def swapped():
    return 201, "?"

@app.after(under="/odd")
def odd(request, response):
    response.add_header("X-Was", str(response.status))
    response.status = 404

@app.get("/odd")
def odd_one():
    return 299, "?"

@app.get("/fails")
def fails():
    raise ValueError("what a pity")

@app.get("/events")
async def events():
    async def source():
        yield "one\\ntwo"
        yield {"event": "tick", "id": 7, "data": {"number": 1}}
        await asyncio.sleep(0.12)
        yield {"comment": "end"}
    return gustnado.events(source(), retry=500, heartbeat=0.05)

app.run(port=int(sys.argv[1]))
"""


def test_links_run_before_and_after_handlers(serve):
    server = serve(PROGRAM)
    answer = server.get("/")
    assert (answer.status, answer.body) == (200, b"plain")
    assert answer.fields["x-order"] == "before,handler,after"
    assert server.get("/secrets").body == b"no secret"
    refused = server.get("/secret/a")
    assert (refused.status, refused.body) == (401, b"who are you?")
    assert refused.fields["www-authenticate"] == "Magic"
    assert refused.fields["x-order"] == "before,after"
    let_in = server.get("/secret/a", "Authorization: open sesame\r\n")
    assert (let_in.status, json.loads(let_in.body)) == (200, {"name": "a"})
    changed = server.get("/swap")
    assert (changed.status, changed.body) == (201, b"swapped before,after")


def test_a_status_without_a_name_is_told_and_can_be_changed(serve):
    answer = serve(PROGRAM).get("/odd")
    assert (answer.status, answer.reason, answer.fields["x-was"]) == (404, "Not Found", "299")


def test_a_handler_that_fails_is_still_a_500(serve):
    server = serve(PROGRAM)
    assert server.get("/fails").status == 500
    assert "ValueError: what a pity" in server.said()
    assert server.get("/secrets").status == 200


def test_events_come_one_by_one_with_heartbeats_between(serve):
    answer = serve(PROGRAM).get("/events")
    assert answer.fields["content-type"] == "text/event-stream"
    assert answer.fields["cache-control"] == "no-store"
    assert answer.is_whole
    expected = (b"retry: 500\n\n", b"data: one\ndata: two\n\n",
                b'event: tick\nid: 7\ndata: {"number":1}\n\n', b": end\n\n")
    assert answer.body.replace(b":\n\n", b"") == b"".join(expected)
    assert answer.body.count(b"\n:\n\n") >= 1


def test_a_client_that_leaves_ends_its_events(serve):
    server = serve("""
        import asyncio, sys, gustnado
        app = gustnado.App()

        @app.get("/")
        async def forever():
            async def source():
                try:
                    while True:
                        yield "tick"
                        await asyncio.sleep(0.01)
                finally:
                    print("the source was closed", file=sys.stderr, flush=True)
            return gustnado.events(source())

        app.run(port=int(sys.argv[1]))
    """)
    with server.connect() as link:
        link.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"data: tick" in link.recv(4096) + link.recv(4096)
    server.wait_for_words("the source was closed")


@pytest.mark.parametrize("event, text", [
    ("a", "data: a\n\n"),
    ("a\r\nb\rc", "data: a\ndata: b\ndata: c\n\n"),
    ("", "data: \n\n"),
    ({"data": [1, "ä"]}, 'data: [1,"ä"]\n\n'),
    ({"id": "", "retry": 10}, "id: \nretry: 10\n\n"),
])
def test_events_are_spelled_as_the_format_has_them(event, text):
    assert event_text(event) == text


@pytest.mark.parametrize("event", [{"event": "a\nb"}, {"id": "a\0"}, {"dta": 1}])
def test_events_that_are_none_are_refused(event):
    with pytest.raises(ValueError, match="expected"):
        event_text(event)
