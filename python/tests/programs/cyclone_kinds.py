"""Programs of every kind that Cyclone's documentation describes. The third word is its name."""

import starting

starting.install()

import sys  # noqa: E402

import cyclone.web  # noqa: E402
from cyclone.web import Application, HTTPError, RequestHandler, asynchronous  # noqa: E402
from twisted.internet import defer, reactor, task  # noqa: E402
from twisted.python import log  # noqa: E402


class Hello(RequestHandler):
    def get(self):
        self.write("Hello, world")


class Echo(RequestHandler):
    def get(self):
        request = self.request
        self.write({
            "method": request.method, "uri": request.uri, "version": request.version,
            "fields": sorted(request.headers.items()), "from": request.remote_ip,
            "arguments": {name: [value.decode("latin-1") for value in values]
                          for name, values in request.arguments.items()},
            "cookies": sorted(self.request.cookies), "body": request.body.decode("latin-1"),
        })

    post = put = get


class Later(RequestHandler):
    @defer.inlineCallbacks
    def get(self):
        yield task.deferLater(reactor, 0.02, lambda: None)
        self.write("later")


class Waits(RequestHandler):
    @asynchronous
    def get(self):
        self.notifyFinish().addCallback(lambda why: log.msg(f"gone: {why}"))


class Asynchronous(RequestHandler):
    @asynchronous
    def get(self):
        reactor.callLater(0.01, self.finish, "called later")


class Fails(RequestHandler):
    def get(self, code):
        if code == "0":
            raise ValueError("what a pity")
        raise HTTPError(int(code), "as asked for")


class Cookies(RequestHandler):
    def get(self):
        self.set_cookie("a", "1", httponly=True)
        self.set_cookie("b", "2", path="/there")
        self.clear_cookie("c")
        self.write(self.get_cookie("b") or "none")


class Flushes(RequestHandler):
    @defer.inlineCallbacks
    def get(self):
        for number in range(3):
            self.write(f"piece {number}\n")
            self.flush()
            yield task.deferLater(reactor, 0.01, lambda: None)


class Page(RequestHandler):
    def get(self):
        self.render("list.html", title="a <list>", items=["one", "<two>"])


class Words(RequestHandler):
    def get(self):
        self.render("words.html")


class Parts(RequestHandler):
    def get(self):
        self.render("parts.html")


class Shout(cyclone.web.UIModule):
    def render(self, word):
        return word.upper() + "!"


class Form(RequestHandler):
    def get(self):
        self.render("form.html")

    def post(self):
        self.write("taken")


class Upload(RequestHandler):
    def post(self):
        self.write({name: [[one["filename"], one["content_type"], len(one["body"])]
                           for one in files] for name, files in self.request.files.items()})


class Guarded(RequestHandler):
    def get(self):
        words = self.request.headers.get("Authorization", "").split()
        if words != ["Basic", "am9lOmJsb3c="]:
            raise cyclone.web.HTTPAuthenticationRequired(log_message="who is it?",
                                                         auth_type="Basic", realm="the realm")
        self.write("let in")


class Member(RequestHandler):
    def get_current_user(self):
        return self.get_secure_cookie("member")

    @cyclone.web.authenticated
    def get(self):
        self.write(b"member: " + self.current_user)


class Join(RequestHandler):
    def get(self):
        self.set_secure_cookie("member", "joe")
        self.write("joined")


class Errors(RequestHandler):
    def write_error(self, status_code, **more):
        self.write(f"own page for {status_code}")

    def get(self):
        raise HTTPError(404)


class Hooks(RequestHandler):
    def initialize(self, database):
        self.database = database

    def prepare(self):
        self.set_header("X-Prepared", "yes")

    def on_finish(self):
        log.msg("finished")

    def get(self, name, number=None):
        self.write(f"{self.database} {name} {number} {self.reverse_url('hooks', 'x', 7)}")


COMMON = [
    (r"/", Hello), (r"/echo", Echo), (r"/later", Later), (r"/waits", Waits),
    (r"/asynchronous", Asynchronous), (r"/fails/(\d+)", Fails), (r"/cookies", Cookies),
]


def hello():
    return Application([(r"/", Hello)])


def common():
    return Application(COMMON)


def debug():
    return Application(COMMON, debug=True)


def proxied():
    return Application(COMMON, xheaders=True)


def bottle():
    from cyclone.bottle import create_app, route

    @route("/")
    def index(client):
        client.write("Hello, bottle")

    @route("/posted", method="post")
    def posted(client):
        client.write("got it")

    return create_app(more_handlers=[(r"/more", Hello)])


def static():
    return Application([(r"/", Hello), (r"/own/(.*)", cyclone.web.StaticFileHandler,
                                        {"path": "files", "default_filename": "text.txt"})],
                       static_path="files")


def template():
    return Application([(r"/", Page)], template_path="files/pages")


def modules():
    return Application([(r"/", Parts)], template_path="files/pages", static_path="files",
                       ui_modules={"Shout": Shout})


def locale():
    class Numbers(RequestHandler):
        def get(self):
            self.write(self.locale.friendly_number(1234567) + " " + self.locale.list("abc"))

    return Application([(r"/", Numbers), (r"/words", Words)], template_path="files/pages")


def locale_csv():
    import cyclone.locale

    cyclone.locale.load_translations("files/locales")
    return locale()


def locale_gettext():
    import cyclone.locale

    cyclone.locale.load_gettext_translations("files/locales", "fruit")
    return locale()


def json_rpc():
    from cyclone.jsonrpc import JsonrpcRequestHandler

    class Procedures(JsonrpcRequestHandler):
        def jsonrpc_add(self, a, b):
            return a + b

        def jsonrpc_fails(self):
            raise ValueError("as asked for")

        def jsonrpc_later(self, what):
            return task.deferLater(reactor, 0.01, lambda: what)

    return Application([(r"/", Procedures)])


def xml_rpc():
    from cyclone.xmlrpc import XmlrpcRequestHandler

    class Procedures(XmlrpcRequestHandler):
        def xmlrpc_add(self, a, b):
            return a + b

    return Application([(r"/", Procedures)])


def sse():
    from cyclone.sse import SSEHandler

    class Events(SSEHandler):
        def bind(self):
            self.sendEvent("one")
            self.sendEvent({"two": 2}, event="named", eid="7", retry=1000)

    return Application([(r"/", Events)])


def sse_bytes():
    """What Cyclone's handler would send, by means that work."""
    from cyclone.sse import SSEHandler

    class Events(SSEHandler):
        def bind(self):
            self.count = 0
            self.ticks = task.LoopingCall(self.tick)
            self.ticks.start(0.02)

        def tick(self):
            self.count += 1
            self.transport.write(b"id: %d\ndata: tick\n\n" % self.count)
            if self.count == 3:
                self.ticks.stop()

        def unbind(self):
            log.msg("unbound")

    return Application([(r"/", Events), (r"/hello", Hello)])


def flush():
    return Application([(r"/", Flushes)])


def websocket():
    from cyclone.websocket import WebSocketHandler

    class Talk(WebSocketHandler):
        def messageReceived(self, message):
            self.sendMessage(message)

    return Application([(r"/", Talk), (r"/hello", Hello)])


def authentication():
    return Application([(r"/", Guarded)])


def login():
    return Application([(r"/", Member), (r"/join", Join)], cookie_secret="s", login_url="/join")


def xsrf():
    return Application([(r"/", Form)], template_path="files/pages", xsrf_cookies=True)


def upload():
    return Application([(r"/", Upload)])


def gzip():
    return Application(COMMON, gzip=True)


def redirect():
    return Application([(r"/", cyclone.web.RedirectHandler, {"url": "/there"}),
                        (r"/there", Hello)])


def errors():
    return Application([(r"/", Errors)])


def hooks():
    return Application([
        cyclone.web.URLSpec(r"/named/(\w+)/(\d+)", Hooks, {"database": "db"}, name="hooks"),
        (r"/(.*)", Hooks, {"database": "other"}),
    ])


def hosts():
    made = Application([(r"/", Hello)])
    made.add_handlers(r"b\.example", [(r"/", Errors)])
    return made


def sqlite():
    import cyclone.sqlite

    database = cyclone.sqlite.InlineSQLite(":memory:")
    database.runQuery("create table notes (id integer, text varchar)")
    database.runQuery("insert into notes values (1, 'a note')")

    class Notes(RequestHandler):
        def get(self):
            self.write({"notes": database.runQuery("select * from notes")})

    return Application([(r"/", Notes)])


def client():
    import cyclone.httpclient

    class Fetches(RequestHandler):
        @defer.inlineCallbacks
        def get(self):
            there = f"http://127.0.0.1:{sys.argv[2]}/there"
            is_bytes = self.get_argument("bytes", None)
            answer = yield cyclone.httpclient.fetch(there.encode() if is_bytes else there)
            self.write(answer.body)

    return Application([(r"/", Fetches), (r"/there", Hello)])


client_text = client


def options():
    import cyclone.options

    cyclone.options.define("greeting", default="Hello from options", type=str)

    class Greets(RequestHandler):
        def get(self):
            self.write(cyclone.options.options.greeting)

    return Application([(r"/", Greets)])


def redis():
    import cyclone.redis

    return Application([(r"/", Hello)], pool=cyclone.redis.lazyConnectionPool)


def mail():
    import cyclone.mail

    return Application([(r"/", Hello)], message=cyclone.mail.Message)


def sign_in_elsewhere():
    import cyclone.auth

    class Google(RequestHandler, cyclone.auth.GoogleMixin):
        @asynchronous
        def get(self):
            self.authenticate_redirect()

    return Application([(r"/", Google)])


if __name__ == "__main__":
    log.startLogging(sys.stderr, setStdout=False)
    starting.listen(globals()[starting.WORDS[0]]())
