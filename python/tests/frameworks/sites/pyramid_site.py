"""The ten requests on Pyramid."""

import zlib

from pyramid.config import Configurator
from pyramid.httpexceptions import HTTPFound
from pyramid.response import Response


def home(request):
    return Response("hello", content_type="text/plain")


def query(request):
    return Response(json_body=dict(request.GET))


def fields(request):
    one = request.headers["X-One"]
    return Response(one, content_type="text/plain", headers={"X-One": one})


def of_json(request):
    return Response(json_body={"got": request.json_body})


def form(request):
    return Response(request.POST["name"])


def upload(request):
    file = request.POST["file"]
    content = file.file.read()
    return Response(f"{file.filename} {len(content)} {zlib.crc32(content)}")


def stream(request):
    pieces = (f"piece {number}\n".encode() for number in range(3))
    return Response(app_iter=pieces, content_type="text/plain")


def redirect(request):
    response = HTTPFound("/")
    response.set_cookie("seen", "1")
    return response


with Configurator() as config:
    for name, view in [("", home), ("query", query), ("headers", fields), ("json", of_json),
                       ("form", form), ("upload", upload), ("stream", stream),
                       ("redirect", redirect)]:
        config.add_route(name or "home", f"/{name}")
        config.add_view(view, route_name=name or "home")
    app = config.make_wsgi_app()
