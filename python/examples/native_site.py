"""Handlers of our own, server-sent events, and a folder that the engine serves without Python.

    python native_site.py [PORT]          # or: gustnado run --workers 4 native_site:app
"""

import asyncio
import pathlib
import sys

import gustnado

app = gustnado.App()


@app.get("/hello/{name}")
def hello(name):
    return f"Hello, {name}!\n"


@app.get("/ticks")
async def ticks():
    async def pieces():
        for number in range(3):
            yield f"id: {number}\ndata: tick\n\n"
            await asyncio.sleep(0.1)

    return gustnado.stream(pieces(), content_type="text/event-stream")


@app.post("/sum")
async def add(request):
    numbers = (await request.read(limit=100_000)).split()
    return {"sum": sum(map(int, numbers))}


app.files("/files", pathlib.Path(__file__).parent / "public")

if __name__ == "__main__":
    app.run(port=int(sys.argv[1]) if len(sys.argv) > 1 else 8888)
