"""The ten requests on Flask."""

import zlib

from flask import Flask, Response, redirect, request

app = Flask(__name__)
TEXT = {"Content-Type": "text/plain"}


@app.get("/")
def home():
    return "hello", TEXT


@app.get("/query")
def query():
    return dict(request.args)


@app.get("/headers")
def fields():
    one = request.headers["X-One"]
    return one, {**TEXT, "X-One": one}


@app.post("/json")
def of_json():
    return {"got": request.get_json()}


@app.post("/form")
def form():
    return request.form["name"]


@app.post("/upload")
def upload():
    file = request.files["file"]
    content = file.read()
    return f"{file.filename} {len(content)} {zlib.crc32(content)}"


@app.get("/stream")
def stream():
    def pieces():
        for number in range(3):
            yield f"piece {number}\n".encode()

    return Response(pieces(), content_type="text/plain")


@app.get("/redirect")
def away():
    response = redirect("/")
    response.set_cookie("seen", "1")
    return response
