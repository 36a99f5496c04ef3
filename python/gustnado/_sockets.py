"""Listening sockets: opened, lent to workers, and shut so that nobody who has come in is lost."""

import array
import errno
import os
import socket
import struct

# From <asm/socket.h>, for which Python has no name.
SO_ATTACH_FILTER = 26
# How long connections that have begun may take to be there, once nobody else is let in.
LAST_ARRIVALS_SECONDS = 0.025


class Listening:
    """Sockets that a server listens on.

    - `ours`: those that this process has opened. Others may be listened on by somebody else too.
    """

    def __init__(self, sockets, ours):
        self.sockets, self._ours = sockets, ours
        self._is_shut = False

    def numbers(self):
        """As the engine is told of them."""
        return ",".join(f"fd:{one.fileno()}" for one in self.sockets)

    def shut(self):
        """Lets nobody in any more. Returns for how many seconds connections may still arrive that
        have begun: they should be accepted before the sockets are closed, which resets whatever
        stands in line."""
        if self._is_shut:
            return 0.0
        self._is_shut = True
        return max((_shut(one) for one in self._ours), default=0.0)

    def close(self):
        """Closes what this process has of them."""
        for one in self.sockets:
            if one in self._ours and not self._is_shut:
                _remove(one)
            one.close()
        self.sockets = []

    def names(self):
        return [name_of(one) for one in self.sockets]


def listen(settings):
    """Opens what settings of the command line ask for."""
    asked = str(settings.get("listen") or "")
    if not asked and settings.get("uds"):
        asked = f"unix:{settings['uds']}"
    if not asked and os.environ.get("LISTEN_PID") == str(os.getpid()):
        count = int(os.environ.get("LISTEN_FDS", "0"))
        asked = ",".join(f"fd:{number}" for number in range(3, 3 + count))
    if not asked:
        asked = f"{settings.get('host', '127.0.0.1')}:{settings.get('port', 8080)}"
    backlog = int(settings.get("backlog", 4096))
    opened, ours = [], []
    for address in asked.split(","):
        one = _open(address.strip(), backlog)
        opened.append(one)
        if not address.strip().startswith("fd:"):
            ours.append(one)
    return Listening(opened, ours)


def _open(address, backlog):
    if address.startswith("fd:"):
        return _inherited(address)
    try:
        opened = _bound(address)
        opened.listen(backlog)
        return opened
    except (OSError, ValueError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OSError(f"cannot listen on {address}: {reason}{_remedy(error)}") from None


def _remedy(error):
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return "; end what listens there, or choose another --port"
    if number == errno.EACCES:
        return "; ports below 1024 take root or CAP_NET_BIND_SERVICE"
    if number == errno.EADDRNOTAVAIL:
        return "; it is no address of this machine, 0.0.0.0 is all of them"
    return ""


def _inherited(address):
    number = address.removeprefix("fd:").lstrip("/")
    try:
        found = socket.socket(fileno=int(number))
        if not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            found.detach()
            raise OSError("it is a socket, but none that listens")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OSError(
            f"cannot listen on descriptor {number}: {reason}; expected the number of a listening "
            "socket that this process was started with"
        ) from None
    return found


def _bound(address):
    if address.startswith("unix:"):
        path = address.removeprefix("unix:")
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        _remove_stale(path)
        opened.bind(path)
        return opened
    host, colon, port = address.rpartition(":")
    if not colon:
        raise ValueError("it has no port, as in 127.0.0.1:8080")
    found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    # A name may have several addresses: IPv4 first, as clients of `localhost` expect.
    family, kind, protocol, _, where = sorted(found, key=lambda one: one[0])[0]
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Accepted sockets inherit this.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        opened.bind(where)
    except OSError:
        opened.close()
        raise
    return opened


def _remove_stale(path):
    """Removes a socket file at which nobody answers."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.connect(path)
    except ConnectionRefusedError:
        os.unlink(path)
    except OSError:
        pass


def _remove(listening):
    """Removes the file of a Unix socket."""
    if listening.family != socket.AF_UNIX:
        return
    try:
        os.unlink(listening.getsockname())
    except OSError:
        pass  # Whoever has removed it has done what was wanted.


# The filter's steps (see bpf(4) of BSD, and Documentation/networking/filter.rst): the byte of a TCP
# head that holds its flags; is SYN among them? Then nothing of the packet is taken, else all of it.
_NO_SYN = (
    (0x30, 0, 0, 13),
    (0x45, 0, 1, 0x02),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 0x40000),
)


def _shut(listening):
    """Has the kernel pass over who wants to connect, as if the packet was lost: it asks again in a
    second, and is refused then. Connections that have begun go on."""
    if listening.family == socket.AF_UNIX:
        # Connecting is done at once there, by the file.
        _remove(listening)
        return 0.0
    steps = array.array("B", b"".join(struct.pack("HBBI", *step) for step in _NO_SYN))
    program = struct.pack("HP", len(_NO_SYN), steps.buffer_info()[0])
    try:
        listening.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
    except OSError:
        return 0.0  # Without it, who comes in the last moment may be reset.
    return LAST_ARRIVALS_SECONDS


def name_of(listening):
    name = listening.getsockname()
    if listening.family == socket.AF_UNIX:
        return f"unix:{name}"
    host = f"[{name[0]}]" if ":" in name[0] else name[0]
    return f"http://{host}:{name[1]}/"


def server_of(sockets):
    """The name and port that requests are told to have come to, until they say otherwise."""
    for one in sockets:
        if one.family != socket.AF_UNIX:
            return one.getsockname()[:2]
    return "localhost", 80
