"""The ten requests on Channels: consumers of HTTP next to Django's views."""

import asyncio

import django_site
from channels.generic.http import AsyncHttpConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import re_path


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


app = ProtocolTypeRouter({"http": URLRouter([
    re_path("^$", Hello.as_asgi()), re_path("^stream$", Pieces.as_asgi()),
    re_path("", django_site.asgi),
])})
