"""Tasks that wait for messages: cancelled, timed, several at once, and driven by others."""

import json
import time

import pytest
import websocket_site
from websocket_site import LOOPS

PROGRAM = """
import asyncio, contextvars, gustnado

app = gustnado.App()
seen = []
variable = contextvars.ContextVar("variable", default="unset")

@app.get("/seen")
async def seen_so_far():
    return seen

@app.websocket("/task")
async def task(socket):
    this, loop = asyncio.current_task(), asyncio.get_running_loop()
    variable.set("set")
    async for message in socket:
        same = asyncio.current_task() is this and this in asyncio.all_tasks()
        plain = "call_soon" not in vars(loop)
        await socket.send(json_of(isinstance(this, asyncio.Task), same, variable.get(), plain,
                                  this.get_coro().__name__, this.done(), this.cancelling()
                                  if hasattr(this, "cancelling") else 0))
        # After a step that the loop has run.
        if message == "sleep":
            await asyncio.sleep(0.001)

def json_of(*values):
    import json
    return json.dumps(values)

@app.websocket("/cancelled")
async def cancelled(socket):
    this = asyncio.current_task()
    asyncio.get_running_loop().call_later(0.02, this.cancel, "by a timer")
    try:
        await socket.receive()
    except asyncio.CancelledError as error:
        await socket.send(f"cancelled {error}")
    if hasattr(this, "uncancel"):
        this.uncancel()
    # Again, by another task, while the first message is waited for by `async for`.
    async def cancel():
        await asyncio.sleep(0.01)
        this.cancel()
    other = asyncio.ensure_future(cancel())
    try:
        async for message in socket:
            await socket.send("got " + message)
    except asyncio.CancelledError:
        await socket.send("cancelled again")
    await other
    async for message in socket:
        await socket.send("then " + message)

@app.websocket("/timed")
async def timed(socket):
    lost = 0
    while lost < 10:
        try:
            message = await asyncio.wait_for(socket.receive(), 0.005)
            await socket.send("early " + message)
        except asyncio.TimeoutError:
            lost += 1
    await socket.send("lost 10")
    if hasattr(asyncio, "timeout"):
        for _ in range(10):
            try:
                async with asyncio.timeout(0.005):
                    await socket.receive()
            except TimeoutError:
                lost += 1
        assert lost == 20 and not asyncio.current_task().cancelling()
    await socket.send("lost all")
    async for message in socket:
        await socket.send("late " + message)

@app.websocket("/several")
async def several(socket):
    async def one(name):
        return f"{name} {await socket.receive()}"
    tasks = [asyncio.ensure_future(one(name)) for name in "ab"]
    await asyncio.sleep(0.001)
    own = await socket.receive()
    await socket.send(json_of(own, *[await task for task in tasks]))
    # The handler waits first.
    later = []
    asyncio.get_running_loop().call_soon(
        lambda: later.append(asyncio.ensure_future(one("later"))))
    own = await socket.receive()
    await socket.send(json_of(own, await later[0]))

@app.websocket("/driven")
async def driven(socket):
    class Driver:
        # Passes on nothing of what is yielded at first.
        def __init__(self, awaited):
            self.awaited = awaited
        def __await__(self):
            steps = self.awaited.__await__()
            for _ in range(2):
                try:
                    next(steps)
                except StopIteration as stop:
                    return stop.value
                yield from asyncio.sleep(0.001).__await__()
            return (yield from steps)
    for _ in range(3):
        await socket.send("driven " + await Driver(socket.receive()))
        assert "call_soon" not in vars(asyncio.get_running_loop())

@app.websocket("/asked")
async def asked(socket):
    # Callbacks between the wait and the next step are the loop's as ever.
    called = []
    class Asks:
        def __await__(self):
            steps = socket.receive().__await__()
            while True:
                try:
                    yielded = next(steps)
                except StopIteration as stop:
                    return stop.value
                asyncio.get_running_loop().call_soon(called.append, len(called))
                yield yielded
    for number in range(3):
        message = await Asks()
        await asyncio.sleep(0)
        await socket.send(f"{message} {len(called)}")

@app.websocket("/closed")
async def closed(socket):
    coroutine = socket.receive()
    steps = coroutine.__await__()
    next(steps)
    coroutine.close()
    await socket.send("closed")
    await socket.send(await socket.receive())

@app.websocket("/ends")
async def ends(socket):
    try:
        await socket.receive()
    except gustnado.ClientDisconnected:
        seen.append(["ends", asyncio.current_task().done()])
"""


class Site(websocket_site.Site):
    def seen(self, name):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            found = [what for who, *what in json.loads(self.clear.get("/seen").body) if who == name]
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(self.clear.said())


@pytest.fixture(scope="module", params=LOOPS)
def site(request, tmp_path_factory):
    with Site.serving(tmp_path_factory.mktemp("tasks"), PROGRAM, request.param) as site:
        yield site


def test_a_handler_is_one_task_with_its_context(site):
    with site.open("/task") as link:
        for message in ("a", "sleep", "b", "sleep", "c"):
            link.send(message)
            assert json.loads(link.receive()) == [True, True, "set", True, "task", False, 0]
        for _ in range(40):
            link.send("a")
        for _ in range(40):
            assert json.loads(link.receive())[:4] == [True, True, "set", True]


def test_a_handler_that_waits_can_be_cancelled(site):
    with site.open("/cancelled") as link:
        assert link.receive() == "cancelled by a timer"
        assert link.receive() == "cancelled again"
        link.send("a")
        assert link.receive() == "then a"


def test_time_outs_take_no_message_away(site):
    with site.open("/timed") as link:
        assert link.receive() == "lost 10"
        assert link.receive() == "lost all"
        for number in range(3):
            link.send(str(number))
            assert link.receive() == f"late {number}"


def test_who_waits_first_receives_first(site):
    with site.open("/several") as link:
        time.sleep(0.05)
        for message in "123":
            link.send(message)
        assert json.loads(link.receive()) == ["3", "a 1", "b 2"]
        time.sleep(0.05)
        for message in "45":
            link.send(message)
        assert json.loads(link.receive()) == ["4", "later 5"]


def test_an_awaitable_may_be_driven_by_hand(site):
    with site.open("/driven") as link:
        for number in range(3):
            time.sleep(0.02)
            link.send(str(number))
            assert link.receive() == f"driven {number}"


def test_callbacks_meanwhile_are_the_loops(site):
    with site.open("/asked") as link:
        for number in range(1, 4):
            time.sleep(0.02)
            link.send(str(number))
            said = link.receive()
            assert said == f"{number} {number}", said


def test_a_wait_that_is_closed_takes_no_message(site):
    with site.open("/closed") as link:
        assert link.receive() == "closed"
        link.send("a")
        assert link.receive() == "a"


def test_a_handler_that_waits_hears_of_the_end(site):
    with site.open("/ends"):
        pass
    assert site.seen("ends") == [[False]]
