"""The ten requests on Channels: consumers of HTTP next to Django's views, and WebSockets with
groups."""

import asyncio

import django_site
from channels.generic.http import AsyncHttpConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import OriginValidator
from django.conf import settings
from django.urls import re_path
from talking import echoes, refused


class Hello(AsyncHttpConsumer):
    async def handle(self, body):
        await self.send_response(200, b"hello", headers=[(b"Content-Type", b"text/plain")])


class Pieces(AsyncHttpConsumer):
    async def handle(self, body):
        await self.send_headers(headers=[(b"Content-Type", b"text/plain")])
        for number in range(3):
            await self.send_body(f"piece {number}\n".encode(), more_body=True)
            await asyncio.sleep(0)
        await self.send_body(b"")


settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}


class Echo(AsyncWebsocketConsumer):
    async def receive(self, text_data=None, bytes_data=None):
        if text_data == "close":
            return await self.close(4001, "asked for")
        await self.send(text_data, bytes_data)


class Room(AsyncWebsocketConsumer):
    async def connect(self):
        self.room = self.scope["url_route"]["kwargs"]["room"]
        await self.channel_layer.group_add(self.room, self.channel_name)
        await self.accept(self.scope["subprotocols"][0])

    async def receive(self, text_data):
        await self.channel_layer.group_send(self.room, {"type": "told", "text": text_data})

    async def told(self, event):
        await self.send(event["text"])

    async def disconnect(self, code):
        await self.channel_layer.group_discard(self.room, self.channel_name)


class Refuses(AsyncWebsocketConsumer):
    async def connect(self):
        await self.close()


app = ProtocolTypeRouter({"websocket": OriginValidator(URLRouter([
    re_path("^echo$", Echo.as_asgi()), re_path("^rooms/(?P<room>.+)$", Room.as_asgi()),
    re_path("^refused$", Refuses.as_asgi()),
]), ["127.0.0.1"]), "http": URLRouter([
    re_path("^$", Hello.as_asgi()), re_path("^stream$", Pieces.as_asgi()),
    re_path("", django_site.asgi),
])})


def talk(connect):
    page = {"origin": "http://127.0.0.1"}
    yield from echoes(lambda path, **more: connect(path, **page, **more))
    yield "WebSocket: refused", refused(lambda path: connect(path, **page), "/refused")
    foe = {"origin": "http://foe.example"}
    yield "WebSocket: of another page", refused(lambda path: connect(path, **foe), "/echo")
    with connect("/rooms/hall", subprotocols=["chat"], **page) as one:
        with connect("/rooms/hall", subprotocols=["chat"], **page) as two:
            one.send("hello")
            yield "WebSocket: group", f"{one.subprotocol} {one.recv()} {two.recv()}"
