"""The ten requests on Starlette with a server of the Model Context Protocol, over streamable HTTP:
a handshake, the list of tools, and a call."""

import contextlib
import json

from mcp.server import MCPServer
from starlette.applications import Starlette
from starlette_site import app as site

server = MCPServer("ten requests")


@server.tool()
def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


tools = server.streamable_http_app()


@contextlib.asynccontextmanager
async def lifespan(_app):
    async with server.session_manager.run():
        yield


app = Starlette(routes=[*tools.routes, *site.routes], lifespan=lifespan)

VARIES = [rb"[0-9a-f]{32}"]


def more(ask):
    fields = ["Content-Type: application/json", "Accept: application/json, text/event-stream"]
    begun = ask("POST", "/mcp", fields, call(1, "initialize", {
        "protocolVersion": "2025-03-26", "capabilities": {},
        "clientInfo": {"name": "table", "version": "1"}}))
    yield "initialize", begun
    session = dict(begun.fields)["mcp-session-id"]
    fields.append(f"Mcp-Session-Id: {session}")
    yield "initialized", ask("POST", "/mcp", fields, json.dumps(
        {"jsonrpc": "2.0", "method": "notifications/initialized"}).encode())
    yield "list of tools", ask("POST", "/mcp", fields, call(2, "tools/list", {}))
    said = ask("POST", "/mcp", fields, call(3, "tools/call", {
        "name": "add", "arguments": {"a": 2, "b": 3}}))
    assert b"5" in said.body, said.body
    yield "call", said


def call(number, method, given):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method,
                       "params": given}).encode()
