"""The entries for HttpArena, as arena/README.md starts them, and what each profile asks for."""

import json
import sys
from pathlib import Path

import pytest
from conftest import Answer, Server, free_port, post_chunked
from websocket_link import WebSocketLink

ARENA = Path(__file__).parent.parent.parent / "arena"
SUM = "/baseline11?a=13&b=42"
ITEMS = [
    {"id": number, "name": f"Item {number}", "category": "tools", "price": 100 * number,
     "quantity": 7, "active": number != 2, "tags": ["new"], "rating": {"score": 4, "count": 9}}
    for number in range(1, 4)
]


def command(entry, port):
    """The command of the entry's image, on a port of this test, with one process."""
    [line] = [line for line in (ARENA / entry / "Dockerfile").read_text().splitlines()
              if line.startswith("CMD ")]
    words = json.loads(line.removeprefix("CMD "))
    for name, value in {"--workers": "1", "--host": "127.0.0.1", "--port": str(port)}.items():
        words[words.index(name) + 1] = value
    return [sys.executable, "-m", *words]


@pytest.fixture(scope="module", params=["gustnado-asgi", "gustnado-wsgi", "gustnado-python"])
def entry(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("arena")
    (folder / "dataset.json").write_text(json.dumps(ITEMS))
    (folder / "static").mkdir()
    (folder / "static" / "reset.css").write_text("a { color: red }")
    (folder / "static" / "app.js").write_text("1;\n" * 10_000)
    port = free_port()
    env = {"ARENA_DATA": str(folder), "PYTHONPATH": str(ARENA / request.param)}
    server = Server(folder, command(request.param, port), port, env=env)
    yield server
    server.kill()


def kind(answer):
    return answer.fields["content-type"].split(";")[0]


def test_baseline_adds_the_query_and_the_body(entry):
    answer = entry.get(SUM)
    assert (answer.status, kind(answer), answer.body) == (200, "text/plain", b"55")
    assert entry.get("/baseline11?b=-2&a=900").body == b"898"
    for body, total in [(b"20", b"75"), (b"981", b"1036")]:
        answer = entry.post(SUM, body, "Content-Type: text/plain\r\n")
        assert (kind(answer), answer.body) == ("text/plain", total)
        assert Answer(post_chunked(entry, SUM, body)).body == total


def test_pipelined_requests_get_their_responses_in_order(entry):
    one = b"GET /pipeline HTTP/1.1\r\nHost: a\r\n\r\n"
    last = b"GET /baseline11?a=1&b=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    raw = entry.ask(one * 15 + last)
    bodies = [part.split(b"\r\n\r\n", 1)[1] for part in raw.split(b"HTTP/1.1 200 OK\r\n")[1:]]
    assert bodies == [b"ok"] * 15 + [b"2"]


@pytest.mark.parametrize("count, factor", [(1, 3), (2, 7), (3, 1)])
def test_json_has_a_total_for_each_item(entry, count, factor):
    answer = entry.get(f"/json/{count}?m={factor}")
    items = [{**item, "total": item["price"] * 7 * factor} for item in ITEMS[:count]]
    assert kind(answer) == "application/json"
    assert json.loads(answer.body) == {"items": items, "count": count}


@pytest.mark.parametrize("length", [0, 17, 512_000, 20 << 20])
def test_uploads_are_counted(entry, length):
    answer = entry.post("/upload", b"x" * length, "Content-Type: application/octet-stream\r\n")
    assert (answer.status, answer.body) == (200, str(length).encode())


def test_files_come_from_the_folder(entry):
    for name, wanted in [("reset.css", "text/css"), ("app.js", "text/javascript")]:
        answer = entry.get(f"/static/{name}")
        assert (answer.status, kind(answer)) == (200, wanted)
        assert answer.body == (entry.folder / "static" / name).read_bytes()
    (entry.folder / "static" / "reset.css").write_text("b { color: tan }")
    assert entry.get("/static/reset.css").body == b"b { color: tan }"
    assert entry.get("/static/nonexistent.txt").status == 404


def test_messages_come_back(entry, request):
    if request.node.callspec.params["entry"] == "gustnado-wsgi":
        pytest.skip("WSGI has no WebSockets")
    with WebSocketLink(entry.port, "/ws") as link:
        for message in ("Hello", b"\x00\xff"):
            link.send(message)
            assert link.receive() == message
