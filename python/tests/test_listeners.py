"""Listeners with settings of their own: what Python opens, and what the engine is told."""

import os
import socket
import stat
import subprocess
import sys

import pytest
from gustnado import _sockets

APP = '''
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(scope["client"]).encode()})
'''
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def listening(*listen, **settings):
    return _sockets.listen({"listen": ",".join(listen), **settings})


def test_a_unix_socket_has_its_own_mode(tmp_path):
    own, usual = f"unix:{tmp_path}/own mode=640", _sockets.of_path(tmp_path / "with blank")
    opened = listening(own, usual, **{"uds-permissions": "606"})
    try:
        for name, mode in [("own", 0o640), ("with blank", 0o606)]:
            assert stat.S_IMODE(os.stat(tmp_path / name).st_mode) == mode
    finally:
        opened.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a socket to another user")
def test_a_unix_socket_has_its_own_owner(tmp_path):
    opened = listening(f"unix:{tmp_path}/own owner=nobody:1", f"unix:{tmp_path}/usual",
                       **{"uds-owner": "nobody"})
    found = [os.stat(tmp_path / name) for name in ("own", "usual")]
    assert [(one.st_uid, one.st_gid) for one in found] == [(65534, 1), (65534, 0)]
    opened.close()
    with pytest.raises(OSError, match="owner no-such"):
        listening(f"unix:{tmp_path}/own owner=no-such")


def test_an_abstract_socket_has_a_name_and_no_file():
    name = f"gustnado-{os.getpid()}"
    opened = listening(f"unix:@{name}")
    assert opened.names() == [f"unix:@{name}"]
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"\0{name}")
    opened.close()


def test_an_address_may_be_yet_to_come_and_an_interface_be_chosen():
    with pytest.raises(OSError, match="no address of this machine"):
        listening("192.0.2.77:0")
    listening("192.0.2.77:0 freebind").close()
    listening("127.0.0.1:0 device=lo").close()
    with pytest.raises(OSError, match="No such device"):
        listening("127.0.0.1:0 device=none0")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="a machine without IPv6")
def test_ipv6_alone_or_both_families():
    for own, is_refused in [("v6only", True), ("v6only=false", False)]:
        opened = listening(f"[::]:0 {own}")
        port = opened.sockets[0].getsockname()[1]
        with socket.socket() as client:
            assert (client.connect_ex(("127.0.0.1", port)) != 0) == is_refused
        opened.close()


def test_the_engine_gets_the_rest():
    own = "proxy-protocol defer-accept=false proxy-allow-from=10.0.0.0/8"
    opened = listening(f"127.0.0.1:0 {own} backlog=9", "127.0.0.1:0")
    one, two = (one.fileno() for one in opened.sockets)
    assert opened.engine_form() == f"fd:{one} {own},fd:{two}"
    opened.close()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_each_listener_has_its_own_rule_about_proxies(tmp_path, workers):
    (tmp_path / "peer.py").write_text(APP)
    path = tmp_path / "socket"
    command = [sys.executable, "-m", "gustnado", "run", "peer:app", "--app-dir", str(tmp_path),
               "--lifespan", "off", "--workers", workers, "--bind", "127.0.0.1:0",
               "--bind", f"unix:{path} proxy-protocol proxy-allow-from=unix"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = next(line for line in process.stderr if " listens on " in line)
            port = int(line.split("127.0.0.1:")[1].split("/")[0])
            with socket.create_connection(("127.0.0.1", port), 10) as client:
                client.sendall(REQUEST)
                assert b"127.0.0.1" in client.makefile("rb").read()
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.sendall(b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n" + REQUEST)
                assert client.makefile("rb").read().endswith(b"('192.0.2.1', 56324)")
        finally:
            process.terminate()


def test_a_mistake_is_one_line():
    command = [sys.executable, "-m", "gustnado", "run", "none:app", "--bind", "127.0.0.1:0 mode=6"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert ended.returncode == 2
    assert "mode is of a Unix socket with a path" in ended.stderr
