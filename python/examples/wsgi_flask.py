"""Hello world with Flask.

    gustnado run --port 8888 wsgi_flask:app
"""

import flask

app = flask.Flask(__name__)


@app.get("/")
def hello():
    return "Hello, world!\n"


@app.post("/sum")
def sum_up():
    return {"sum": sum(flask.request.get_json())}
