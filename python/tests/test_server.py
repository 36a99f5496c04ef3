"""`gustnado.run`, `gustnado.Server` and `App.run`: in threads, ended from elsewhere, refused."""

import subprocess
import sys
import textwrap
import threading
import time
import urllib.request

import gustnado
import pytest
from gustnado._options import SettingError


def hello():
    app = gustnado.App()
    app.get("/")(lambda: "hello")
    return app


def asynchronous():
    app = gustnado.App()

    @app.get("/")
    async def hello():
        return "hello"

    return app


async def asgi(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                ended.append(True)
                return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


def wsgi(environ, start_response):
    start_response("200 OK", [])
    return [b"hello"]


ended = []


def got(server):
    (url,) = server.urls
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read()


@pytest.mark.parametrize("app", [hello(), asynchronous(), asgi, wsgi])
@pytest.mark.parametrize("options", [{"loop": "asyncio"}, {"loop": "uvloop", "threads": 2}])
def test_a_server_in_a_thread(app, options):
    if options["loop"] == "uvloop":
        pytest.importorskip("uvloop")
    ended.clear()
    interval = sys.getswitchinterval()
    with gustnado.Server(app, port=0, **options) as server:
        assert server.started and got(server) == b"hello"
    assert sys.getswitchinterval() == interval
    assert app is not asgi or ended
    with pytest.raises(OSError):
        got(server)


def test_it_is_run_as_uvicorn_s_is():
    server = gustnado.Server(hello(), port=0, quiet=True)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    assert got(server) == b"hello" and not server.should_exit
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


def test_its_address_is_to_click():
    with gustnado.Server(hello(), host="0.0.0.0", port=0, quiet=True) as server:
        assert server.urls[0].startswith("http://127.0.0.1:") and got(server) == b"hello"


def test_one_that_was_asked_to_end_before_it_began_ends():
    server = gustnado.Server(asgi, port=0, quiet=True)
    server.stop()
    thread = threading.Thread(target=server.run)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_an_app_is_ended_by_a_handler():
    app = hello()

    @app.get("/stop")
    def stop():
        app.stop()
        return "so be it"

    failures = []

    def run():
        try:
            app.run(port=0, quiet=True)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not (app._servers and app._servers[0].started):
        time.sleep(0.005)
    (url,) = app._servers[0].urls
    with urllib.request.urlopen(url + "stop", timeout=10) as answer:
        assert answer.read() == b"so be it"
    thread.join(10)
    assert not thread.is_alive() and not failures and not app._servers


def test_a_start_that_hangs_can_be_ended():
    import asyncio

    async def hanging(scope, receive, send):
        begun.set()
        await asyncio.Event().wait()

    begun = threading.Event()
    server = gustnado.Server(hanging, port=0, quiet=True, lifespan="on")
    thread = threading.Thread(target=server.run)
    thread.start()
    assert begun.wait(10)
    server.stop()
    thread.join(10)
    assert not thread.is_alive() and not server.started


def test_a_shutdown_that_holds_on_is_no_end_of_the_program():
    async def holding(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        time.sleep(1.5)

    # By force a process of its own would be ended by now: this one would take the tests with it.
    with gustnado.Server(holding, port=0, quiet=True, lifespan_timeout=0.1):
        pass


def test_what_is_wrong_is_raised_where_it_was_started():
    with pytest.raises(SettingError, match='no setting is called "prot"; did you mean "port"'):
        gustnado.Server(hello(), prot=1)
    with pytest.raises(SettingError, match="workers_max: an application runs on one thread"):
        gustnado.Server(hello(), workers_max=3)
    for settings, said in [({"port": 99999}, "port: expected a whole number from 0 to 65535"),
                           ({"port": "abc"}, 'port: expected a whole number.*found "abc"'),
                           ({"workers": 2}, "need the main thread"),
                           ({"reload": True}, "need the main thread")]:
        with pytest.raises(SettingError, match=said):
            with gustnado.Server(hello(), **settings):
                pass
    with gustnado.Server(hello(), port=0) as server:
        port = int(server.urls[0].rsplit(":")[-1].strip("/"))
        with pytest.raises(OSError, match="Address already in use"):
            with gustnado.Server(hello(), port=port):
                pass


# --- In the main thread.

def ended_program(folder, program):
    (folder / "program.py").write_text(textwrap.dedent(program))
    done = subprocess.run([sys.executable, "program.py"], cwd=folder, capture_output=True,
                          text=True, timeout=30)
    return done.returncode, done.stderr


@pytest.mark.parametrize("settings, code, said", [
    ("prot=1", 2, 'gustnado: no setting is called "prot"; did you mean "port"?'),
    ("port=99999", 2, "gustnado: port: expected a whole number from 0 to 65535"),
    ("workers=0", 2, "gustnado: workers: expected a whole number from 1 to 1024, or auto"),
    ("host='192.0.2.1', port=1", 1, "gustnado: cannot listen on 192.0.2.1:1"),
    ("header_timeout='abc', workers=2", 2, "gustnado: header_timeout: expected a duration"),
    ("static={'/x': '/nope'}", 2, "no folder at /nope"),
    ("reload=True", 2, "reload needs an application by its name"),
    ("root='.'", 2, "gustnado: root: the application serves every path"),
])
@pytest.mark.parametrize("way", ["app.run({})", "gustnado.run(app, {})"])
def test_a_program_that_cannot_start_exits_with_a_failure(tmp_path, settings, code, said, way):
    found, text = ended_program(tmp_path, f"""
        import gustnado
        app = gustnado.App()
        {way.format(settings)}
        print("it goes on")
        """)
    assert (found, text.count("\n")) == (code, 1) and said in text, text


def test_routes_that_cannot_stand_are_refused():
    app = gustnado.App()
    for path, said in [("", "begin it with /"), ("x", "begin it with /"),
                       ("/{a}/{a}", "two parts are called 'a'")]:
        with pytest.raises(ValueError, match=said):
            app.get(path)
    app.get("/{a}/{b}")


def test_an_application_by_its_name(tmp_path, start):
    (tmp_path / "main.py").write_text(textwrap.dedent("""
        import sys
        import gustnado

        def app(environ, start_response):
            start_response("200 OK", [])
            return [__name__.encode()]

        if __name__ == "__main__":
            gustnado.run("main:app", port=int(sys.argv[1]), workers=2, timeout_keep_alive=5)
            print("it has ended", file=sys.stderr)
        """))
    server = start([sys.executable, "main.py", "{port}"])
    server.wait_for_words("2 processes")
    assert server.get("/").body == b"main"
    assert server.end() == 0 and "it has ended" in server.said()


def test_a_program_has_its_signals_back(tmp_path):
    code, text = ended_program(tmp_path, """
        import os, signal, threading
        import gustnado
        app = gustnado.App()

        @app.get("/")
        async def hello():
            return "hello"

        def own(*_):
            pass

        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, own)
        # (Ignored, where the tests run in the background of a shell.)
        interrupted = signal.getsignal(signal.SIGINT)
        for workers in (1, 2):
            for interface in (app, lambda environ, start_response: []):
                threading.Timer(0.7, os.kill, [os.getpid(), signal.SIGTERM]).start()
                gustnado.run(interface, port=0, workers=workers)
        assert signal.getsignal(signal.SIGTERM) is own
        assert signal.getsignal(signal.SIGUSR1) is own
        assert signal.getsignal(signal.SIGINT) is interrupted
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
        """)
    assert code == 0, text


def test_the_version_is_told():
    assert gustnado.__version__.count(".") == 2
    done = subprocess.run([sys.executable, "-m", "gustnado", "run", "--version"],
                          capture_output=True, text=True, timeout=30)
    assert done.stdout.startswith(f"gustnado {gustnado.__version__} ")
