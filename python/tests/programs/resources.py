"""The resources of `web.py`."""

from twisted.cred import portal
from twisted.cred.checkers import InMemoryUsernamePasswordDatabaseDontUse
from twisted.internet import defer, interfaces, reactor, task
from twisted.python import log
from twisted.web import (
    guard,
    pages,
    proxy,
    resource,
    server,
    static,
    template,
    util,
    vhost,
    wsgi,
    xmlrpc,
)
from zope.interface import implementer


class Page(resource.Resource):
    """What a function says about a request."""

    isLeaf = True

    def __init__(self, say):
        super().__init__()
        self.say = say

    def render_GET(self, request):
        return self.say(request)

    render_POST = render_GET


def hello(request):
    log.msg("saying hello")
    return b"Hello, world!"


def seen(request):
    headers = request.requestHeaders.getAllRawHeaders()
    return b"\n".join(repr(one).encode() for one in (
        request.method, request.uri, request.path, request.clientproto, request.prepath,
        request.postpath, sorted(request.args.items()), sorted(request.received_cookies.items()),
        [(name, values) for name, values in headers], request.getClientAddress().host,
        request.isSecure(), request.getRequestHostname(), request.getUser(),
        request.getPassword(), request.content.read(), request.URLPath(),
    ))


def some(request):
    return b"so and so, " * 20 + repr(request.args).encode()


def later(request):
    request.write(b"first ")
    request.notifyFinish().addCallbacks(
        lambda nothing: log.msg("went well"),
        lambda failure: log.msg("lost", failure.type.__name__),
    )

    def go_on():
        request.write(b"second ")
        request.write(b"")
        request.finish()

    reactor.callLater(0.02, go_on)
    return server.NOT_DONE_YET


def waits(request):
    request.notifyFinish().addErrback(lambda failure: log.msg("lost", failure.type.__name__))
    if b"write" in request.args:
        request.write(b"so far")
    return server.NOT_DONE_YET


def whole_later(request):
    request.setHeader(b"content-length", b"4")
    reactor.callLater(0.01, lambda: (request.write(b"four"), request.finish()))
    return server.NOT_DONE_YET


def fails(request):
    raise ValueError("what a pity")


def fails_within(request):
    request.write(b"begun")
    raise ValueError("what a pity, now")


def wrong_kind(request):
    return "text, not bytes"


def cookie(request):
    request.addCookie(b"a", b"1", path=b"/", httpOnly=True)
    request.addCookie("b", "two words")
    request.setHeader(b"x-set", b"once")
    request.responseHeaders.addRawHeader(b"x-set", b"twice")
    request.setLastModified(1234567890)
    return b"" if request.setETag(b'"x"') else b"cookie"


def session(request):
    count = getattr(request.getSession(), "count", 0) + 1
    request.getSession().count = count
    return b"%d" % count


def status(request):
    request.setResponseCode(int(request.args[b"code"][0]), request.args.get(b"words", [None])[0])
    return request.args.get(b"body", [b""])[0]


def closes(request):
    request.setHeader(b"connection", b"close")
    return b"closed behind this"


def drops(request):
    request.loseConnection()
    return b"dropped"


def aborts(request):
    request.transport.abortConnection()
    return server.NOT_DONE_YET


def large(request):
    return bytes(range(256)) * 4096


@implementer(interfaces.IPushProducer)
class Push:
    """Writes 3 MB, as fast as it may."""

    def __init__(self, request):
        self.request, self.left, self.may = request, 300, True
        request.registerProducer(self, True)
        self.go_on()

    def go_on(self):
        while self.may and self.left:
            self.left -= 1
            self.request.write(bytes([self.left % 256]) * 10_000)
        if self.may and not self.left:
            self.may = False
            self.request.unregisterProducer()
            self.request.finish()

    def pauseProducing(self):
        self.may = False

    def resumeProducing(self):
        self.may = True
        self.go_on()

    def stopProducing(self):
        self.may, self.left = False, 0
        log.msg("push was stopped")


@implementer(interfaces.IPullProducer)
class Pull:
    """Writes 3 MB, a piece each time that one is requested."""

    def __init__(self, request):
        self.request, self.left = request, 60
        request.setHeader(b"content-length", b"3000000")
        request.registerProducer(self, False)

    def resumeProducing(self):
        self.left -= 1
        self.request.write(bytes([self.left]) * 50_000)
        if not self.left:
            self.request.unregisterProducer()
            self.request.finish()

    def stopProducing(self):
        log.msg("pull was stopped")


def with_producer(kind):
    def say(request):
        kind(request)
        return server.NOT_DONE_YET

    return Page(say)


class Tree(resource.Resource):
    """Children that are made on request."""

    def __init__(self, depth=0):
        super().__init__()
        self.depth = depth

    def getChild(self, name, request):
        return self if name == b"" else (Tree(self.depth + 1) if self.depth < 3 else
                                         pages.notFound("No such branch", "It ends here."))

    def render_GET(self, request):
        return b"%d %r %r" % (self.depth, request.prepath, request.postpath)


class Late(resource.Resource):
    """Finds its child later."""

    def getChild(self, name, request):
        found = task.deferLater(reactor, 0.01, lambda: static.Data(name, "text/x-late"))
        return util.DeferredResource(found)


class Greeting(template.Element):
    loader = template.XMLString(
        '<p xmlns:t="http://twistedmatrix.com/ns/twisted.web.template/0.1" t:render="words" />'
    )

    @template.renderer
    def words(self, request, tag):
        said = defer.Deferred()
        reactor.callLater(0.01, said.callback, tag("Hello & welcome"))
        return said


class Procedures(xmlrpc.XMLRPC):
    def xmlrpc_add(self, a, b):
        return a + b

    def xmlrpc_fails(self):
        raise xmlrpc.Fault(7, "as asked for")


def wsgi_app(environ, start_response):
    names = ("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "CONTENT_TYPE",
             "CONTENT_LENGTH", "SERVER_PROTOCOL", "REMOTE_ADDR", "HTTP_X_ODD")
    said = repr([(name, environ.get(name)) for name in names]).encode()
    body = environ["wsgi.input"].read()
    start_response("200 Fine", [("Content-Type", "text/plain"), ("X-From", "a thread")])
    return [said, b"\n", body]


def wsgi_fails(environ, start_response):
    raise ValueError("in a thread")


@implementer(portal.IRealm)
class Realm:
    def requestAvatar(self, avatar, mind, *kinds):
        return resource.IResource, static.Data(b"let in: " + avatar, "text/plain"), lambda: None


def guarded(factory):
    users = InMemoryUsernamePasswordDatabaseDontUse(joe=b"blow")
    return guard.HTTPAuthSessionWrapper(portal.Portal(Realm(), [users]), [factory])


def hosts():
    made = vhost.NameVirtualHost()
    made.default = static.Data(b"some host", "text/plain")
    made.addHost(b"a", static.Data(b"host a", "text/plain"))
    made.addHost(b"b.example", static.Data(b"host b", "text/plain"))
    return made


PAGES = {
    b"": hello, b"seen": seen, b"later": later, b"waits": waits, b"whole-later": whole_later,
    b"fails": fails, b"fails-within": fails_within, b"wrong-kind": wrong_kind, b"cookie": cookie,
    b"session": session, b"status": status, b"closes": closes, b"drops": drops, b"aborts": aborts,
    b"large": large,
    b"redirect": lambda request: util.redirectTo(b"/seen?a=1&b", request),
    b"template": lambda request: template.renderElement(request, Greeting()),
}


def tree(port):
    root = resource.Resource()
    for name, say in PAGES.items():
        root.putChild(name, Page(say))
    files = static.File("files")
    files.indexNames = ["index.html"]
    zipped = server.GzipEncoderFactory()
    threads = reactor.getThreadPool()
    children = {
        b"tree": Tree(), b"late": Late(), b"files": files, b"procedures": Procedures(),
        b"push": with_producer(Push), b"pull": with_producer(Pull),
        b"data": static.Data(b"some data", "text/x-data"), b"moved": util.Redirect(b"/data"),
        b"up": util.ParentRedirect(), b"hosts": hosts(),
        b"error": pages.errorPage(418, "A teapot", "Short & <stout>"),
        b"forbidden": pages.forbidden(), b"gone": pages.notFound(),
        b"wsgi": wsgi.WSGIResource(reactor, threads, wsgi_app),
        b"wsgi-fails": wsgi.WSGIResource(reactor, threads, wsgi_fails),
        b"basic": guarded(guard.BasicCredentialFactory(b"the realm")),
        b"digest": guarded(guard.DigestCredentialFactory("md5", b"the realm")),
        b"proxy": proxy.ReverseProxyResource("127.0.0.1", port, b"/seen"),
        b"zipped": resource.EncodingResourceWrapper(Page(some), [zipped]),
        b"zipped-large": resource.EncodingResourceWrapper(Page(large), [zipped]),
        b"zipped-later": resource.EncodingResourceWrapper(Page(later), [zipped]),
    }
    for name, child in children.items():
        root.putChild(name, child)
    return root

