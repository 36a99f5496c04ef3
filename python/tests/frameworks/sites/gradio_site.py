"""The ten requests on FastAPI with a Gradio page: its configuration, a call, and the response to
it, which is streamed (SSE)."""

import json

import gradio
from fastapi_site import app as site

with gradio.Blocks(analytics_enabled=False) as page:
    text = gradio.Textbox()
    text.submit(lambda given: given.upper(), text, gradio.Textbox(), api_name="shout")

app = gradio.mount_gradio_app(site, page, path="/gradio")

# (The first one is the length of the configuration.)
VARIES = [rb"^3\d{3}$", rb"127\.0\.0\.1:\d+", rb'"app_id":\d+', rb'"event_id":"\w+"',
          rb'"username":[^,]+']


def more(ask):
    yield "configuration", ask("GET", "/gradio/config")
    begun = ask("POST", "/gradio/gradio_api/call/shout", ["Content-Type: application/json"],
                json.dumps({"data": ["hello"]}).encode())
    yield "call", begun
    number = json.loads(begun.body)["event_id"]
    said = ask("GET", f"/gradio/gradio_api/call/shout/{number}")
    assert b"HELLO" in said.body, said.body
    yield "answer by SSE", said
