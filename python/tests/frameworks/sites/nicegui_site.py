"""NiceGUI beside the ten requests on FastAPI: a page whose button is pressed by WebSocket."""

import html
import json
import re
import urllib.request

import socketio
from fastapi_site import app
from nicegui import ui


@ui.page("/nice")
def page():
    label = ui.label("not pressed")
    ui.button("press", on_click=lambda: label.set_text("pressed"))


ui.run_with(app)

# Of clients, elements and listeners.
VARIES = [rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}"]


def talk(connect):
    with urllib.request.urlopen(connect.url("http") + "/nice", timeout=10) as answer:
        text = html.unescape(answer.read().decode())
    client_id = re.search(r'["\']client_id["\']:\s*["\']([\w-]+)', text)[1]
    button = re.search(r'"(\d+)":\{"tag":"q-btn".*?"listener_id":"([\w-]+)"', text)
    query = (f"client_id={client_id}&tab_id=1&document_id=1&next_message_id=0"
             "&implicit_handshake=true")
    with socketio.SimpleClient() as client:
        client.connect(f"{connect.url('http')}/?{query}", transports=["websocket"],
                       socketio_path="/_nicegui_ws/socket.io")
        client.emit("event", {"id": int(button[1]), "client_id": client_id,
                              "listener_id": button[2], "args": {}})
        update = ""
        while "pressed" not in update:
            name, *update = client.receive(timeout=10)
            update = json.dumps(update)
        yield "NiceGUI: a button is pressed", f"{client.transport} {name}: pressed"
