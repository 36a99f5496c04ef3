"""The ten requests on FastAPI: models, dependencies, forms and files by annotation."""

import zlib
from typing import Annotated

from fastapi import Depends, FastAPI, Form, Header, UploadFile
from fastapi.responses import PlainTextResponse, RedirectResponse, StreamingResponse
from pydantic import BaseModel

app = FastAPI()


class Thing(BaseModel):
    name: str
    price: float = 1.5


@app.api_route("/", methods=["GET", "HEAD"])
async def home():
    return PlainTextResponse("hello")


async def both(name: str, x: int):
    yield {"name": name, "x": x}


@app.get("/query")
async def query(given: Annotated[dict, Depends(both)]):
    return given


@app.get("/headers")
def fields(x_one: Annotated[str, Header()]):
    return PlainTextResponse(x_one, headers={"X-One": x_one})


@app.post("/json")
async def of_json(thing: Thing) -> Thing:
    return thing


@app.post("/form")
def form(name: Annotated[str, Form()]):
    return PlainTextResponse(name)


@app.post("/upload")
async def upload(file: UploadFile):
    content = await file.read()
    return PlainTextResponse(f"{file.filename} {len(content)} {zlib.crc32(content)}")


@app.get("/stream")
async def stream():
    async def pieces():
        for number in range(3):
            yield f"piece {number}\n"

    return StreamingResponse(pieces(), media_type="text/plain")


@app.get("/redirect")
async def redirect():
    response = RedirectResponse("/", 302)
    response.set_cookie("seen", "1")
    return response
