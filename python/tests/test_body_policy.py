"""Where the whole bodies of requests are kept: in memory, on the disk, or nowhere."""

import hashlib
import time

import pytest
from conftest import post_chunked

PROGRAM = """
import hashlib
import gustnado

app = gustnado.App()

def digest(body):
    return f"{len(body)} {hashlib.sha256(body).hexdigest()}"

@app.post("/plain")
def plain(request):
    return digest(request.body)

@app.post("/memory", body="memory")
def memory(request):
    return digest(request.body)

@app.post("/spool", body="spool")
def spool(request):
    return digest(request.body)

@app.post("/ignored")
def ignored():
    return "ignored"

@app.post("/read")
async def read(request):
    return digest(await request.read(limit=100 << 20))

@app.post("/stream", body="stream")
async def stream(request):
    found, length = hashlib.sha256(), 0
    async for piece in request.stream():
        found.update(piece)
        length += len(piece)
    return f"{length} {found.hexdigest()}"
"""

SETTINGS = ["--limit-body-bytes", "100m", "--limit-body-memory", "1m", "--stats-interval", "50ms"]
BODY = bytes(index * 7 % 251 for index in range(1000)) * 5000
WANTED = f"{len(BODY)} {hashlib.sha256(BODY).hexdigest()}".encode()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "spool").mkdir()
    return tmp_path / "spool"


def wait_for(server, **wanted):
    """Waits until counters are as they should be, by the line of --stats-interval."""
    deadline, found = time.monotonic() + 10, {}
    while any(found.get(name) != number for name, number in wanted.items()):
        assert time.monotonic() < deadline, (found, wanted)
        time.sleep(0.02)
        lines = [line for line in server.said().splitlines() if line.startswith("event=stats ")]
        pairs = [pair.split("=") for pair in lines[-1].split()[1:]] if lines else []
        found = {name: int(number) for name, number in pairs}


def refusal(run, program, *options):
    """Returns what a server says that does not start."""
    server = run(program, *options, waits=False)
    assert server.process.wait(20) != 0
    return server.said()


def test_a_long_body_of_a_plain_function_is_on_the_disk(run, folder):
    server = run(PROGRAM, *SETTINGS, "--body-spool", str(folder))
    for path in ("/plain", "/spool", "/stream"):
        assert server.post(path, BODY).body == WANTED, path
        assert WANTED in post_chunked(server, path, BODY), path
    assert server.post("/ignored", BODY).body == b"ignored"
    # Those of two paths.
    wait_for(server, bodies_spooled=4, bodies_cut=0, spool_failed=0, spool_bytes=0,
             memory_bodies=0)
    assert list(folder.iterdir()) == []


def test_memory_that_is_short_refuses_what_must_stay_there(run, folder):
    server = run(PROGRAM, *SETTINGS, "--body-spool", str(folder))
    assert server.post("/memory", BODY).status == 503
    assert server.post("/memory", BODY[:500_000]).status == 200
    # A coroutine holds what it reads as one object of its own.
    assert server.post("/read", BODY).status == 503
    assert server.post("/read", BODY[:500_000]).status == 200
    wait_for(server, bodies_spooled=0, bodies_cut=2, memory_bodies=0)


def test_the_policy_of_all_is_a_setting(run, folder):
    server = run(PROGRAM, *SETTINGS, "--body-spool", str(folder), "--body-policy", "memory")
    assert server.post("/plain", BODY).status == 503
    assert server.post("/spool", BODY).body == WANTED


def test_a_plain_function_needs_its_bodies_whole(run):
    said = refusal(run, '''
import gustnado
app = gustnado.App()

@app.post("/whole", body="stream")
def whole(request):
    return request.body
''')
    assert "/whole keeps no bodies" in said and "request.stream()" in said


def test_a_policy_has_a_name():
    import gustnado

    with pytest.raises(ValueError, match='expected "stream", "memory" or "spool"'):
        gustnado.App().post("/", body="disk")(lambda request: None)


def test_a_folder_that_is_not_there_is_named_at_the_start(run):
    said = refusal(run, PROGRAM, "--body-spool", "/nowhere/at/all")
    assert "--body-spool /nowhere/at/all" in said and "choose a folder" in said
