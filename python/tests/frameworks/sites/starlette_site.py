"""The ten requests on Starlette."""

import zlib

from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, StreamingResponse
from starlette.routing import Route


async def home(request):
    return PlainTextResponse("hello")


async def query(request):
    return JSONResponse(dict(request.query_params))


async def fields(request):
    one = request.headers["x-one"]
    return PlainTextResponse(one, headers={"X-One": one})


async def of_json(request):
    return JSONResponse({"got": await request.json()})


async def form(request):
    return PlainTextResponse((await request.form())["name"])


async def upload(request):
    file = (await request.form())["file"]
    content = await file.read()
    return PlainTextResponse(f"{file.filename} {len(content)} {zlib.crc32(content)}")


async def stream(request):
    async def pieces():
        for number in range(3):
            yield f"piece {number}\n"

    return StreamingResponse(pieces(), media_type="text/plain")


async def redirect(request):
    response = RedirectResponse("/", 302)
    response.set_cookie("seen", "1")
    return response


app = Starlette(routes=[
    Route("/", home), Route("/query", query), Route("/headers", fields),
    Route("/json", of_json, methods=["POST"]), Route("/form", form, methods=["POST"]),
    Route("/upload", upload, methods=["POST"]), Route("/stream", stream),
    Route("/redirect", redirect),
])
