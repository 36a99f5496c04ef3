"""What an echo by WebSocket costs in Python, here and on other servers, and what idle ones hold.

    python bench/websocket_python.py [--rounds 3] [--seconds 3] [--idle 2000] [NAME...]

One server at a time on one CPU, `bench/websocket_echo.c` on the other. It needs gustnado as a
release build, granian, uvicorn with websockets, and picows: what is not installed is left out.
Figures are CPU time of the server's processes per message (user and system), and resident memory
per WebSocket that has echoed one message.
"""

import argparse
import importlib.util
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
CONNECTIONS, BYTES = 64, 64

PROGRAM = """
import gustnado

async def asgi(scope, receive, send):
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept"})
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return
        await send({"type": "websocket.send", "bytes": message["bytes"]})

native = gustnado.App()

@native.websocket("/")
async def echo(socket):
    async for message in socket:
        await socket.send(message)
"""
PICOWS = """
import asyncio, sys, picows

class Echo(picows.WSListener):
    def on_ws_frame(self, transport, frame):
        if frame.msg_type == picows.WSMsgType.CLOSE:
            return transport.disconnect()
        transport.send(frame.msg_type, frame.get_payload_as_bytes())

async def main():
    server = await picows.ws_create_server(lambda _request: Echo(), "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()

if "uvloop" in sys.argv:
    import uvloop
    uvloop.run(main())
else:
    asyncio.run(main())
"""
# By name: the module that it needs, and its command.
SERVERS = {
    "gustnado ASGI": ("gustnado", "-m gustnado run --port {port} --quiet program:asgi"),
    "gustnado native": ("gustnado", "-m gustnado run --port {port} --quiet program:native"),
    "gustnado ASGI, asyncio": (
        "gustnado", "-m gustnado run --port {port} --quiet --loop asyncio program:asgi"),
    "gustnado native, asyncio": (
        "gustnado", "-m gustnado run --port {port} --quiet --loop asyncio program:native"),
    "granian ASGI": (
        "granian", "-m granian --interface asgi --ws --port {port} --no-log --loop uvloop "
        "program:asgi"),
    "uvicorn, websockets": (
        "uvicorn", "-m uvicorn --ws websockets-sansio --loop uvloop --port {port} "
        "--log-level warning --ws-per-message-deflate false program:asgi"),
    "picows, uvloop": ("picows", "picows_program.py {port} uvloop"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="only servers whose name begins so")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--idle", type=int, default=2000, help="WebSockets that are held; 0: none")
    options = parser.parse_args()
    servers = {name: command for name, (module, command) in SERVERS.items()
               if importlib.util.find_spec(module)
               and (not options.names or name.startswith(tuple(options.names)))}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "program.py").write_text(PROGRAM)
        (folder / "picows_program.py").write_text(PICOWS)
        client = folder / "websocket"
        subprocess.run(["gcc", "-O2", "-o", client, HERE / "websocket_echo.c"], check=True)
        echoes = {name: [] for name in servers}
        for _ in range(options.rounds):
            for name, command in servers.items():
                echoes[name].append(echo(folder, client, command, options.seconds))
        print("| server | us of CPU per message | messages per second | bytes per idle WebSocket |")
        print("| --- | ---: | ---: | ---: |")
        for name, command in servers.items():
            held = idle(folder, client, command, options.idle) if options.idle else ""
            costs, rates = zip(*echoes[name], strict=True)
            print(f"| {name} | {statistics.median(costs):.2f} ({min(costs):.2f} to "
                  f"{max(costs):.2f}) | {statistics.median(rates):,.0f} | {held} |", flush=True)


class Server:
    """A server on CPU 0, until the block ends."""

    def __init__(self, folder, command):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = taken.getsockname()[1]
        words = command.replace("{port}", str(self.port)).split()
        self.process = subprocess.Popen(["taskset", "-c", "0", sys.executable, *words], cwd=folder,
                                        stdout=subprocess.DEVNULL)

    def __enter__(self):
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{self.process.args} has not started")
                time.sleep(0.05)

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def pids(self):
        """Its processes: some serve in a child."""
        found, waiting = [], [self.process.pid]
        while waiting:
            pid = waiting.pop()
            found.append(pid)
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        return found

    def seconds(self):
        def of(pid):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / TICKS

        return sum(map(of, self.pids()))

    def bytes(self):
        return sum(int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
                   for pid in self.pids())


def load(client, port, count, seconds):
    command = ["taskset", "-c", "1", client, port, "/", count, BYTES, seconds]
    process = subprocess.Popen([str(word) for word in command], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ready = process.stdout.readline()
    assert ready.startswith("READY"), f"the client has ended: {ready!r}"
    return process


def echo(folder, client, command, seconds):
    """Returns microseconds of CPU per message, and messages per second."""
    with Server(folder, command) as server:
        process = load(client, server.port, CONNECTIONS, 1)
        process.communicate()
        process = load(client, server.port, CONNECTIONS, seconds)
        before = server.seconds()
        messages = int(process.stdout.readline().split()[1])
        used = server.seconds() - before
        process.wait()
        return used / messages * 1e6, messages / seconds


def idle(folder, client, command, count):
    """Returns bytes per WebSocket that is idle, of the second half of them."""
    with Server(folder, command) as server:
        first = load(client, server.port, count, 0)
        before = server.bytes()
        second = load(client, server.port, count, 0)
        time.sleep(0.5)
        held = (server.bytes() - before) / count
        for process in (first, second):
            process.communicate("\n")
        return f"{held:,.0f}"


if __name__ == "__main__":
    main()
