"""The ten requests on Connexion: a specification, and functions that it names."""

import zlib

from connexion import AsyncApp
from starlette.responses import PlainTextResponse, RedirectResponse, StreamingResponse

TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "text"}
STRING = {"type": "string"}


async def home():
    return PlainTextResponse("hello")


async def query(name, x):
    return {"name": name, "x": x}


async def fields():
    from connexion import request

    one = request.headers["X-One"]
    return PlainTextResponse(one, headers={"X-One": one})


async def of_json(body):
    return {"got": body}


async def form(body):
    return PlainTextResponse(body["name"])


async def upload(file):
    content = await file.read()
    return PlainTextResponse(f"{file.filename} {len(content)} {zlib.crc32(content)}")


async def stream():
    async def pieces():
        for number in range(3):
            yield f"piece {number}\n"

    return StreamingResponse(pieces(), media_type="text/plain")


async def redirect():
    response = RedirectResponse("/", 302)
    response.set_cookie("seen", "1")
    return response


def operation(name, **more):
    return {"operationId": f"connexion_site.{name}", "responses": {"200": TEXT}, **more}


def body(kind, schema):
    return {"requestBody": {"content": {kind: {"schema": schema}}}}


def given(name, kind):
    return {"name": name, "in": "query", "required": True, "schema": {"type": kind}}


SPECIFICATION = {
    "openapi": "3.0.0", "info": {"title": "ten requests", "version": "1"}, "paths": {
        "/": {"get": operation("home"), "head": operation("home")},
        "/query": {"get": operation("query", parameters=[given("name", "string"),
                                                         given("x", "integer")])},
        "/headers": {"get": operation("fields")},
        "/json": {"post": operation("of_json", **body("application/json", {"type": "object"}))},
        "/form": {"post": operation("form", **body(
            "application/x-www-form-urlencoded",
            {"type": "object", "properties": {"name": STRING}}))},
        "/upload": {"post": operation("upload", **body("multipart/form-data", {
            "type": "object", "properties": {"file": {**STRING, "format": "binary"}}}))},
        "/stream": {"get": operation("stream")},
        "/redirect": {"get": operation("redirect")},
    }}

app = AsyncApp("connexion_site")
app.add_api(SPECIFICATION)
