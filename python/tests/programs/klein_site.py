"""A site of Klein's: routes of every kind that its documentation describes."""

import starting

starting.install()

import klein  # noqa: E402
from twisted.internet import defer, reactor, task  # noqa: E402
from twisted.web import resource, server, static, template  # noqa: E402

app = klein.Klein()


@app.route("/")
def hello(request):
    return "Hello, world!"


@app.route("/seen", methods=["GET", "POST", "HEAD", "PUT"])
def seen(request):
    fields = list(request.requestHeaders.getAllRawHeaders())
    return repr([request.method, request.uri, sorted(request.args.items()), fields,
                 request.content.read()])


@app.route("/user/<name>/<int:number>")
def user(request, name, number):
    return f"{name}: {number}"


@app.route("/form", methods=["POST"])
def form(request):
    return b"&".join(request.args.get(b"a", [b"none"]))


@app.route("/later")
def later(request):
    return task.deferLater(reactor, 0.01, lambda: b"later")


@app.route("/coroutine")
async def coroutine(request):
    await task.deferLater(reactor, 0.01, lambda: None)
    request.setHeader(b"x-from", b"a coroutine")
    return "from a coroutine"


@app.route("/inline")
@defer.inlineCallbacks
def inline(request):
    yield task.deferLater(reactor, 0.01, lambda: None)
    return "inline"


@app.route("/written")
def written(request):
    request.write(b"first ")
    reactor.callLater(0.01, lambda: (request.write(b"second"), request.finish()))
    return server.NOT_DONE_YET


@app.route("/branch", branch=True)
def branch(request):
    return Leaf()


@app.route("/files/", branch=True)
def files(request):
    return static.File("files")


@app.route("/element")
def element(request):
    return template.Element(template.XMLString("<p>an element</p>"))


@app.route("/fails")
def fails(request):
    raise ValueError("what a pity")


class Pity(Exception):
    """One that the site has a page for."""


@app.route("/pity")
def pity(request):
    raise Pity("handled")


@app.handle_errors(Pity)
def handled(request, failure):
    request.setResponseCode(418)
    return f"sorry: {failure.value}"


with app.subroute("/below") as below:
    @below.route("/there")
    def there(request):
        return "below, there"


class Leaf(resource.Resource):
    isLeaf = True

    def render_GET(self, request):
        return b"leaf %r" % request.postpath


starting.listen(server.Site(app.resource()))
