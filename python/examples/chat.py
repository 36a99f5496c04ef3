"""A chat with a page, in rooms. Open it in two windows; the page comes back by itself when the
server starts again.

    python chat.py [PORT]                 # or: gustnado run chat:app
"""

import json
import pathlib
import sys

import gustnado

app = gustnado.App()
PAGE = (pathlib.Path(__file__).parent / "chat.html").read_text()
# Who is in which room. (A process has its own: a chat of several workers needs a broker.)
rooms: dict[str, set[gustnado.WebSocket]] = {}


@app.get("/")
def page():
    return gustnado.Response(PAGE, content_type="text/html; charset=utf-8")


@app.websocket("/rooms/{room}", message_bytes_max=10_000)
async def chat(socket, room):
    name = (socket.request.query_value("name") or "Nobody")[:40]
    members = rooms.setdefault(room, set())
    members.add(socket)
    tell(members, name, None)
    try:
        async for text in socket:
            if isinstance(text, str):
                tell(members, name, text)
    finally:
        members.discard(socket)
        tell(members, name, None)
        if not members:
            rooms.pop(room, None)


def tell(members, name, text):
    """Sends to all, and waits for none: one that is too slow comes again."""
    told = json.dumps({"name": name, "text": text, "here": len(members)})
    for member in list(members):
        if not member.try_send(told):
            member.close(1013, "too slow")


if __name__ == "__main__":
    app.run(port=int(sys.argv[1]) if len(sys.argv) > 1 else 8888)
