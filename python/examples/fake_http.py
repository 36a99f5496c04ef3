"""An HTTP server that is none: every request gets the same response, as soon as an empty line is
there. Nothing is parsed, so this is the most that a protocol written in Python can do.

    python fake_http.py [PORT]          # and on the port behind it, too
"""

import sys

from gustnado.twisted import install

install()

from twisted.internet import protocol, reactor  # noqa: E402

ANSWER = b"\r\n".join((
    b"HTTP/1.1 200 OK",
    b"Server: FakeHTTP",
    b"Content-Type: text/html; charset=UTF-8",
    b'Etag: "fake"',
    b"Content-Length: 14",
    b"",
    b"Hello, world\r\n",
))


class FakeHTTP(protocol.Protocol):
    came = b""

    def dataReceived(self, data):
        self.came = self.came[-3:] + data
        if b"\r\n\r\n" in self.came:
            self.transport.write(ANSWER)
            self.transport.loseConnection()


port = int(sys.argv[1]) if len(sys.argv) > 1 else 8888
for number in (port, port + 1):
    reactor.listenTCP(number, protocol.Factory.forProtocol(FakeHTTP))
reactor.run()
