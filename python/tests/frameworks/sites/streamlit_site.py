"""Streamlit: its page, and a script that runs by WebSocket, twice. (It answers every path.)"""

import pathlib
import tempfile

import streamlit
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

HAS_ONLY_ITS_OWN = True
VARIES = [rb"_streamlit_xsrf=[^;]+"]

SCRIPT = """
import streamlit
streamlit.session_state.runs = streamlit.session_state.get("runs", 0) + 1
streamlit.write(f"run {streamlit.session_state.runs}: " + "x" * 100_000)
"""

script = pathlib.Path(tempfile.mkdtemp()) / "script.py"
script.write_text(SCRIPT)
app = streamlit.App(script)


def more(ask):
    yield "page", ask("GET", "/")
    yield "health", ask("GET", "/_stcore/health")


def talk(connect):
    with connect("/_stcore/stream", subprotocols=["streamlit"]) as link:
        for _ in range(2):
            message = BackMsg()
            message.rerun_script.query_string = ""
            link.send(message.SerializeToString())
            said = run_of(link)
            assert len(said) > 100_000, said[:100]
            yield f"Streamlit: {said[:5]}", f"{link.subprotocol}: {said[:6]} {len(said)}"


def run_of(link):
    """Returns the texts of a run of the script."""
    texts = []
    while True:
        came = ForwardMsg()
        came.ParseFromString(link.recv(timeout=20))
        if came.HasField("delta"):
            texts.append(came.delta.new_element.markdown.body)
        if came.HasField("script_finished"):
            return "".join(texts)
