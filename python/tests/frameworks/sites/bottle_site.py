"""The ten requests on Bottle."""

import zlib

from bottle import Bottle, redirect, request, response

app = Bottle()


@app.get("/")
def home():
    response.content_type = "text/plain"
    return "hello"


@app.get("/query")
def query():
    return dict(request.query)


@app.get("/headers")
def fields():
    one = request.get_header("X-One")
    response.set_header("X-One", one)
    return one


@app.post("/json")
def of_json():
    return {"got": request.json}


@app.post("/form")
def form():
    return request.forms["name"]


@app.post("/upload")
def upload():
    file = request.files["file"]
    content = file.file.read()
    return f"{file.filename} {len(content)} {zlib.crc32(content)}"


@app.get("/stream")
def stream():
    response.content_type = "text/plain"
    for number in range(3):
        yield f"piece {number}\n".encode()


@app.get("/redirect")
def away():
    response.set_cookie("seen", "1")
    redirect("/", 302)
