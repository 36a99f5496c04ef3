"""Listening sockets: opened here, and passed to engines in this and other processes."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import time

from ._gustnado import parse_listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    _Address = tuple[Any, ...]

# Time for which a busy address is retried, since its holder may be ending.
RETRY_SECONDS = 2.0
# Mode of a Unix socket: every user may connect, such as a proxy's.
UDS_MODE = 0o666
# Time for which a connection must stay open to count as served.
PROBE_SECONDS = 0.2


class Listening:
    """Sockets that a server listens on.

    - `ours`: those that this process has opened. Other processes may listen on the rest too.
    - `own`: the settings of each listener that the engine takes, as text.
    - `has_tls`: whether listeners that say nothing about it speak TLS.
    """

    def __init__(
        self, sockets: list[socket.socket], ours: list[socket.socket], own: list[str],
        has_tls: bool,
    ) -> None:
        self.sockets, self._ours, self._own, self._has_tls = sockets, ours, own, has_tls

    def engine_form(self) -> str:
        """Returns them in the engine's form."""
        both = zip(self.sockets, self._own, strict=True)
        return ",".join(f"fd:{one.fileno()}{own}" for one, own in both)

    def own_fds(self) -> list[int]:
        """Returns the sockets that no other process serves: their queues must be drained."""
        return [one.fileno() for one in self._ours]

    def close(self) -> None:
        """Closes this process's descriptors."""
        for one in self.sockets:
            if one in self._ours:
                _remove(one)
            one.close()
        self.sockets, self._ours, self._own = [], [], []

    def names(self) -> list[str]:
        both = zip(self.sockets, self._own, strict=True)
        return [name_of(one, self._scheme(own)) for one, own in both]

    def _scheme(self, own: str) -> str:
        words = own.split()
        is_sealed = "tls" in words or (self._has_tls and "tls=false" not in words)
        return "https" if is_sealed else "http"


def listen(settings: dict[str, Any]) -> Listening:
    """Opens the sockets of the settings."""
    asked = str(settings.get("listen") or "")
    if not asked and settings.get("uds"):
        asked = of_path(settings["uds"])
    if not asked and os.environ.get("LISTEN_PID") == str(os.getpid()):
        count = int(os.environ.get("LISTEN_FDS", "0"))
        asked = ",".join(f"fd:{fd}" for fd in range(3, 3 + count))
    if not asked:
        asked = f"{settings.get('host', '127.0.0.1')}:{settings.get('port', 8080)}"
    usual = {"backlog": int(settings.get("backlog", 4096)), "owner": settings.get("uds-owner"),
             "mode": mode_of(settings.get("uds-permissions", UDS_MODE))}
    opened: list[socket.socket] = []
    ours: list[socket.socket] = []
    owns: list[str] = []
    for text in asked.split(","):
        address, of_socket, own = parse_listener(text)
        one = _open(address, {**usual, **of_socket})
        opened.append(one)
        owns.append(own)
        if not address.startswith("fd:"):
            ours.append(one)
    return Listening(opened, ours, owns, bool(settings.get("tls-cert") or settings.get("acme")))


def of_path(path: object) -> str:
    """Returns the listener of a Unix socket."""
    path = str(path).replace("\\", "\\\\").replace(" ", "\\ ")
    return f"unix:{path}"


def mode_of(given: object) -> int:
    """Permissions: a number, or octal text as `chmod` takes it.

    Raises ValueError where it is neither."""
    try:
        mode = given if isinstance(given, int) else int(str(given), 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o777:
        raise ValueError(f"expected permissions in octal such as 660, found {given!r}")
    return mode


def _open(address: str, options: dict[str, Any]) -> socket.socket:
    if address.startswith("fd:"):
        return _inherited(address)
    until = time.monotonic() + RETRY_SECONDS
    try:
        while True:
            try:
                return _listening(address, options)
            except OSError as error:
                if error.errno != errno.EADDRINUSE or address.startswith("unix:"):
                    raise
                if time.monotonic() > until:
                    raise
            if _is_served(address):
                # A listener with deferred accepts may have closed without notice.
                return _listening(address, options)
            time.sleep(0.005)
    except (OSError, ValueError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OSError(f"cannot listen on {address}: {reason}{_remedy(error)}") from None


def _listening(address: str, options: dict[str, Any]) -> socket.socket:
    opened = _bound(address, options)
    try:
        if opened.family == socket.AF_UNIX and not _is_abstract(opened):
            # No client can connect before it listens.
            if options["owner"]:
                _chown(opened.getsockname(), options["owner"])
            os.chmod(opened.getsockname(), options["mode"])
        opened.listen(options["backlog"])
    except OSError:
        opened.close()
        raise
    return opened


def _chown(path: str, owner: str) -> None:
    user, _colon, group = owner.partition(":")
    try:
        shutil.chown(path, _id_of(user), _id_of(group) if group else None)
    except LookupError as error:
        raise ValueError(f"owner {owner}: {error}") from None


def _id_of(name: str) -> int | str:
    return int(name) if name.isdigit() else name


def _is_abstract(opened: socket.socket) -> bool:
    return isinstance(opened.getsockname(), bytes)


def _remedy(error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return "; end what listens there, or choose another --port"
    if number == errno.EACCES:
        return "; ports below 1024 take root or CAP_NET_BIND_SERVICE"
    if number == errno.EADDRNOTAVAIL:
        return "; it is no address of this machine, 0.0.0.0 is all of them"
    return ""


def _inherited(address: str) -> socket.socket:
    fd = address.removeprefix("fd:").lstrip("/")
    try:
        found = socket.socket(fileno=int(fd))
        if not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            found.detach()
            raise OSError("it is a socket, but none that listens")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OSError(
            f"cannot listen on descriptor {fd}: {reason}; expected the number of a listening "
            "socket that this process was started with"
        ) from None
    return found


def _bound(address: str, options: dict[str, Any]) -> socket.socket:
    if address.startswith("unix:"):
        path = address.removeprefix("unix:")
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if path.startswith("@"):
            opened.bind(f"\0{path[1:]}")
        else:
            _remove_stale(path)
            opened.bind(path)
        return opened
    family, where = _resolved(address)
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Accepted sockets inherit this.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        _prepare(opened, options)
        opened.bind(where)
    except OSError:
        opened.close()
        raise
    return opened


def _prepare(opened: socket.socket, options: dict[str, Any]) -> None:
    """Sets what a socket is bound with."""
    is_v6 = opened.family == socket.AF_INET6
    if "v6only" in options and is_v6:
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, options["v6only"])
    if options.get("freebind"):
        level, name = (socket.IPPROTO_IPV6, 78) if is_v6 else (socket.IPPROTO_IP, 15)
        opened.setsockopt(level, name, 1)  # (IPV6_FREEBIND and IP_FREEBIND.)
    if "device" in options:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, options["device"].encode())


def _resolved(address: str) -> tuple[socket.AddressFamily, _Address]:
    """The family, and the address as the kernel takes it."""
    host, colon, port = address.rpartition(":")
    if not colon:
        raise ValueError("it has no port, as in 127.0.0.1:8080")
    found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    # A name may have several addresses: IPv4 first, as clients of `localhost` expect.
    family, _, _, _, where = sorted(found, key=lambda one: one[0])[0]
    return family, where


def _is_served(address: str) -> bool:
    """Whether a connection there is made and stays open. One that a server leaves behind that is
    just going is refused or reset."""
    family, where = _resolved(address)
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.settimeout(PROBE_SECONDS)
            # (To any address is to this machine.)
            probe.connect(where)
            return bool(probe.recv(1))
    except TimeoutError:
        return True
    except OSError:
        return False


def _remove_stale(path: str) -> None:
    """Removes a stale socket file."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.connect(path)
    except ConnectionRefusedError:
        os.unlink(path)
    except OSError:
        pass


def _remove(listening: socket.socket) -> None:
    """Removes the file of a Unix socket."""
    if listening.family != socket.AF_UNIX or _is_abstract(listening):
        return
    try:
        os.unlink(listening.getsockname())
    except OSError:
        pass  # It was removed already.


def name_of(listening: socket.socket, scheme: str) -> str:
    name = listening.getsockname()
    if listening.family == socket.AF_UNIX:
        return f"unix:@{name[1:].decode()}" if isinstance(name, bytes) else f"unix:{name}"
    # A clickable URL; other addresses follow.
    host, every = _EVERY.get(name[0], (name[0], ""))
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}:{name[1]}/{every}"


_EVERY = {"0.0.0.0": ("127.0.0.1", " (every IPv4 interface)"), "::": ("::1", " (every interface)")}


def server_of(sockets: list[socket.socket]) -> tuple[str, int]:
    """Returns the default server name and port of requests."""
    for one in sockets:
        if one.family != socket.AF_UNIX:
            host, port, *_ = one.getsockname()
            return host, port
    return "localhost", 80
