"""What programs do with Twisted that is out of the ordinary, and works here as it does on epoll."""

import pytest
from conftest import read_all

pytest.importorskip("twisted")

START = """
import sys, threading
from gustnado.twisted import install
install()
from twisted.internet import reactor, protocol
from twisted.web import http, resource, server, static

class Hello(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        return b"Hello, world!"

def listen(root, **named):
    site = server.Site(root, **named)
    reactor.listenTCP(int(sys.argv[1]), site, interface="127.0.0.1")
    return site

def say(*words):
    print(*words, file=sys.stderr, flush=True)
"""


def get(path="/", fields=""):
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode()


def test_the_reactor_runs_in_another_thread_than_it_was_made_in(serve):
    server = serve(START + """
listen(Hello())
runs = threading.Thread(target=reactor.run, kwargs={"installSignalHandlers": False})
reactor.callLater(0, say, "it runs")
runs.start()
runs.join()
""")
    for _ in range(3):
        assert server.get("/").body == b"Hello, world!"
    assert "it runs" in server.said()
    assert "Traceback" not in server.said()


def test_an_answer_from_another_thread_does_no_harm(serve):
    server = serve(START + """
class Later(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        def write():
            request.write(b"from a thread")
            reactor.callFromThread(request.finish)
        threading.Thread(target=write).start()
        return server.NOT_DONE_YET

listen(Later())
reactor.run()
""")
    assert server.get("/").body == b"from a thread"
    assert "panic" not in server.said().lower()


def test_a_protocol_that_takes_the_connection_over_gets_what_comes(serve):
    server = serve(START + """
class Echo(protocol.Protocol):
    def dataReceived(self, data):
        self.transport.write(b"<" + data + b">")

class TakenOver(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        transport, request.channel.transport = request.channel.transport, None
        transport.write(b"mine now")
        transport.protocol = Echo()
        transport.protocol.makeConnection(transport)
        return server.NOT_DONE_YET

listen(TakenOver())
reactor.run()
""")
    with server.connect() as link:
        link.sendall(get())
        assert link.recv(100) == b"mine now"
        for word in (b"one", get("/two")):
            link.sendall(word)
            assert link.recv(1000) == b"<" + word + b">"


def test_methods_and_limits_that_were_replaced_are_those_that_count(serve):
    server = serve(START + """
taken = http.HTTPChannel.allContentReceived
def all_content_received(self):
    say("asked for", self._path)
    taken(self)
http.HTTPChannel.allContentReceived = all_content_received
http.HTTPChannel.totalHeadersSize = 200
listen(Hello())
reactor.run()
""")
    assert server.get("/here").body == b"Hello, world!"
    assert "asked for b'/here'" in server.said()
    assert server.get("/", f"X: {'x' * 300}\r\n").status == 400


def test_a_server_name_that_is_text_is_sent(serve):
    server = serve(START + """
server.version = "Apache"
listen(Hello())
reactor.run()
""")
    assert server.get("/").fields["server"] == "Apache"


def test_a_server_name_may_change_while_it_serves(serve):
    server = serve(START + """
class Naming(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        server.version = request.uri[1:]
        return b"named"

listen(Naming())
reactor.run()
""")
    server.get("/First")
    assert server.get("/Second").fields["server"] == "First"


def test_a_resource_needs_no_more_than_render(serve):
    server = serve(START + """
class Duck:
    isLeaf = True
    def render(self, request):
        return b"quack"

listen(Duck())
reactor.run()
""")
    assert server.get("/a/b").body == b"quack"


def test_a_method_of_another_resource_is_asked_for_that_one(serve):
    server = serve(START + """
class Outer(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        return b"outer"

outer = Outer()
outer.render = Hello().render
listen(outer)
reactor.run()
""")
    assert server.get("/").body == b"Hello, world!"


def test_channels_may_call_later_for_themselves(serve):
    server = serve(START + """
class Channel(http.HTTPChannel):
    def connectionMade(self):
        http.HTTPChannel.connectionMade(self)
        self.callLater(0.05, say, "later", "with words")

site = server.Site(Hello(), timeout=0.3)
def build(address, build=site.buildProtocol):
    made = build(address)
    channel = Channel()
    channel.__dict__.update(made._channel.__dict__)
    made._channel = channel
    return made
site.buildProtocol = build
reactor.listenTCP(int(sys.argv[1]), site, interface="127.0.0.1")
reactor.run()
""")
    with server.connect() as link:
        link.sendall(get())
        # The idle time-out ends it all the same.
        assert read_all(link).endswith(b"Hello, world!")
    server.wait_for_words("later with words")


def test_a_resource_may_let_go_of_the_request_s_content(serve):
    server = serve(START + """
class Careless(resource.Resource):
    isLeaf = True
    def render_GET(self, request):
        request.content = None
        return b"done"

listen(Careless())
reactor.run()
""")
    assert server.get("/").body == b"done"
    assert "Traceback" not in server.said()


def test_a_head_that_cyclone_refuses_ends_the_connection_in_order(serve):
    pytest.importorskip("cyclone")
    server = serve(START + """
import cyclone.web
class Main(cyclone.web.RequestHandler):
    def post(self):
        self.write("posted")
reactor.listenTCP(int(sys.argv[1]), cyclone.web.Application([("/", Main)]))
reactor.run()
""")
    refused = b"POST / HTTP/1.1\r\nHost: a\r\nX: \xff\r\nContent-Length: 3\r\n\r\nabc"
    assert server.ask(refused) == b""
    assert "AttributeError" not in server.said()
    whole = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc"
    assert server.ask(whole).endswith(b"posted")


@pytest.mark.parametrize("before", ["", "transport.write(b'x' * 1000)"])
def test_a_producer_of_a_transport_is_asked_for_each_piece(serve, before):
    pytest.importorskip("cyclone")
    server = serve(START + """
import io
import cyclone.web
from twisted.protocols.basic import FileSender

class Sends(cyclone.web.RequestHandler):
    @cyclone.web.asynchronous
    def get(self):
        self.set_header("Content-Length", str(300_000 + BEFORE))
        self.flush()
        transport = self.request.connection.transport
        WRITE
        sending = FileSender().beginFileTransfer(io.BytesIO(b"y" * 300_000), transport)
        sending.addCallback(lambda _: self.finish())

class Small(cyclone.web.RequestHandler):
    def get(self):
        self.write("small")

application = cyclone.web.Application([("/", Sends), ("/small", Small)])
reactor.listenTCP(int(sys.argv[1]), application, interface="127.0.0.1")
reactor.run()
""".replace("WRITE", before or "pass").replace("BEFORE", "1000" if before else "0"))
    with server.connect() as link:
        for _ in range(2):
            link.sendall(get())
            came = b""
            while not came.endswith(b"y" * 300_000):
                piece = link.recv(65536)
                assert piece, len(came)
                came += piece
            assert came.startswith(b"HTTP/1.1 200") and came.count(b"x" * 1000) == bool(before)
            link.sendall(get("/small"))
            assert link.recv(65536).endswith(b"small")
