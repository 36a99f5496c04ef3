"""The ten requests on Sanic, by ASGI."""

import zlib

from sanic import Sanic, response
from talking import echoes

app = Sanic("frameworks")


@app.route("/", methods=["GET", "HEAD"])
async def home(request):
    return response.text("hello")


@app.get("/query")
async def query(request):
    return response.json({name: values[0] for name, values in request.args.items()})


@app.get("/headers")
async def fields(request):
    one = request.headers["x-one"]
    return response.text(one, headers={"X-One": one})


@app.post("/json")
async def of_json(request):
    return response.json({"got": request.json})


@app.post("/form")
async def form(request):
    return response.text(request.form.get("name"))


@app.post("/upload")
async def upload(request):
    file = request.files.get("file")
    return response.text(f"{file.name} {len(file.body)} {zlib.crc32(file.body)}")


@app.get("/stream")
async def stream(request):
    answer = await request.respond(content_type="text/plain")
    for number in range(3):
        await answer.send(f"piece {number}\n")
    await answer.eof()


@app.get("/redirect")
async def redirect(request):
    answer = response.redirect("/")
    answer.add_cookie("seen", "1")
    return answer


@app.websocket("/echo")
async def echo(request, socket):
    while (message := await socket.recv()) not in ("close", None):
        await socket.send(message)


def talk(connect):
    # (`close` of a WebSocket does nothing by ASGI.)
    yield from echoes(connect, closes=False)
