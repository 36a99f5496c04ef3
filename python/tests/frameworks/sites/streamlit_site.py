"""Streamlit beside the ten requests on Starlette: a script that runs by WebSocket, twice."""

import pathlib
import tempfile

import streamlit
from starlette_site import app as site
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

SCRIPT = """
import streamlit
streamlit.session_state.runs = streamlit.session_state.get("runs", 0) + 1
streamlit.write(f"run {streamlit.session_state.runs}: " + "x" * 100_000)
"""

script = pathlib.Path(tempfile.mkdtemp()) / "script.py"
script.write_text(SCRIPT)
app = streamlit.App(script, routes=site.routes[:-3])


def talk(connect):
    with connect("/_stcore/stream", subprotocols=["streamlit"]) as link:
        for _ in range(2):
            message = BackMsg()
            message.rerun_script.query_string = ""
            link.send(message.SerializeToString())
            texts = []
            while True:
                came = ForwardMsg()
                came.ParseFromString(link.recv(timeout=20))
                if came.HasField("delta"):
                    texts.append(came.delta.new_element.markdown.body)
                if came.HasField("script_finished"):
                    break
            said = "".join(texts)
            assert len(said) > 100_000, texts
            yield f"Streamlit: {said[:5]}", f"{link.subprotocol}: {said[:6]} {len(said)}"
