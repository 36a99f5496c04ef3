"""Hello world with Starlette.

    gustnado run --port 8888 asgi_starlette:app
"""

from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route


async def hello(request):
    return PlainTextResponse("Hello, world!\n")


async def sum_up(request):
    return JSONResponse({"sum": sum(await request.json())})


app = Starlette(routes=[Route("/", hello), Route("/sum", sum_up, methods=["POST"])])
