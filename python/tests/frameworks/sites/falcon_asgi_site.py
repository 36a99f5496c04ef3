"""The ten requests on Falcon, by ASGI."""

import zlib

import falcon.asgi
import falcon.media
from talking import echoes


class Home:
    async def on_get(self, request, response):
        response.text, response.content_type = "hello", "text/plain"

    on_head = on_get


class Query:
    async def on_get(self, request, response):
        response.media = dict(request.params)


class Fields:
    async def on_get(self, request, response):
        response.text = request.get_header("X-One")
        response.set_header("X-One", response.text)


class OfJson:
    async def on_post(self, request, response):
        response.media = {"got": await request.get_media()}


class Form:
    async def on_post(self, request, response):
        response.text = (await request.get_media())["name"]


class Upload:
    async def on_post(self, request, response):
        async for part in await request.get_media():
            content = await part.stream.read()
            response.text = f"{part.filename} {len(content)} {zlib.crc32(content)}"


class Stream:
    async def on_get(self, request, response):
        async def pieces():
            for number in range(3):
                yield f"piece {number}\n".encode()

        response.stream, response.content_type = pieces(), "text/plain"


class Redirect:
    async def on_get(self, request, response):
        response.set_cookie("seen", "1")
        raise falcon.HTTPFound("/")


app = falcon.asgi.App()
for path, resource in [("/", Home()), ("/query", Query()), ("/headers", Fields()),
                       ("/json", OfJson()), ("/form", Form()), ("/upload", Upload()),
                       ("/stream", Stream()), ("/redirect", Redirect())]:
    app.add_route(path, resource)


class Echo:
    async def on_websocket(self, req, socket):
        await socket.accept()
        try:
            while (text := await socket.receive_text()) != "close":
                await socket.send_text(text)
            await socket.close(4001, "asked for")
        except falcon.WebSocketDisconnected:
            pass


app.add_route("/echo", Echo())


def talk(connect):
    yield from echoes(connect, kinds=str)
