"""The ten requests on Falcon, by WSGI."""

import zlib

import falcon
import falcon.media


class Home:
    def on_get(self, request, response):
        response.text, response.content_type = "hello", "text/plain"

    on_head = on_get


class Query:
    def on_get(self, request, response):
        response.media = dict(request.params)


class Fields:
    def on_get(self, request, response):
        response.text = request.get_header("X-One")
        response.set_header("X-One", response.text)


class OfJson:
    def on_post(self, request, response):
        response.media = {"got": request.get_media()}


class Form:
    def on_post(self, request, response):
        response.text = request.get_media()["name"]


class Upload:
    def on_post(self, request, response):
        for part in request.get_media():
            content = part.stream.read()
            response.text = f"{part.filename} {len(content)} {zlib.crc32(content)}"


class Stream:
    def on_get(self, request, response):
        def pieces():
            for number in range(3):
                yield f"piece {number}\n".encode()

        response.stream, response.content_type = pieces(), "text/plain"


class Redirect:
    def on_get(self, request, response):
        response.set_cookie("seen", "1")
        raise falcon.HTTPFound("/")


app = falcon.App()
for path, resource in [("/", Home()), ("/query", Query()), ("/headers", Fields()),
                       ("/json", OfJson()), ("/form", Form()), ("/upload", Upload()),
                       ("/stream", Stream()), ("/redirect", Redirect())]:
    app.add_route(path, resource)
