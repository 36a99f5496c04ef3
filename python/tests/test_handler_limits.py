"""Handlers that run at a time, and routes that are exempt."""

import time

import pytest

NATIVE = """
    import asyncio
    import gustnado

    app = gustnado.App()

    @app.get("/slow")
    async def slow(request):
        await asyncio.sleep(0.5)
        return "slow"

    @app.get("/health", exempt=True)
    async def health(request):
        return "healthy"
    """


def statuses(answers):
    return sorted(int(answer.split()[1]) for answer in answers)


def test_further_requests_wait_or_get_503_and_exempt_ones_do_not(run):
    server = run(NATIVE, "--limit-concurrency", "2", "--handler-queue", "1")
    answers, took = server.ask_at_once("/slow", 6)
    assert statuses(answers) == [200, 200, 200, 503, 503, 503]
    assert all(b"Retry-After: 1\r\n" in answer for answer in answers if b" 503 " in answer)
    assert took < 5
    with server.connect() as first, server.connect() as second:
        for link in first, second:
            link.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        began = time.monotonic()
        answers, took = server.ask_at_once("/health", 3)
        assert statuses(answers) == [200, 200, 200] and time.monotonic() - began < 0.4
        assert b" 200 " in first.recv(4096) and b" 200 " in second.recv(4096)


def test_an_asgi_application_is_counted(run):
    server = run("""
        import asyncio

        async def app(scope, receive, send):
            if scope["type"] != "http":
                return
            await asyncio.sleep(0.3)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"done"})
        """, "--limit-concurrency", "1", "--handler-queue", "0")
    answers, _ = server.ask_at_once("/", 3)
    assert statuses(answers) == [200, 503, 503]


def test_a_route_with_a_limit_of_its_own_keeps_no_handler_from_others(run):
    server = run("""
        import asyncio
        import gustnado

        app = gustnado.App()

        @app.get("/slow", limit_concurrency=1)
        async def slow(request):
            await asyncio.sleep(0.5)
            return "slow"

        @app.post("/slow")
        async def more(request):
            return "more"

        @app.get("/quick")
        async def quick(request):
            return "quick"
        """, "--limit-concurrency", "2", "--handler-queue", "1")
    links = [server.connect() for _ in range(4)]
    for link in links:
        link.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
    for _ in range(10):
        assert server.get("/quick").body == b"quick"
    answers = [link.recv(4096) for link in links]
    for link in links:
        link.close()
    assert statuses(answers) == [200, 200, 503, 503]
    assert all(b"Retry-After: 1\r\n" in answer for answer in answers if b" 503 " in answer)
    # The methods of a path share its limit.
    with server.connect() as link:
        link.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        time.sleep(0.1)
        began = time.monotonic()
        assert server.post("/slow", b"").body == b"more"
        assert time.monotonic() - began > 0.2


def test_a_limit_is_a_whole_number():
    import gustnado

    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="limit_concurrency"):
            gustnado.App().get("/", limit_concurrency=wrong)


WSGI = """
    import time

    def app(environ, start_response):
        if environ["PATH_INFO"] == "/slow":
            time.sleep(0.6)
        start_response("200 OK", [])
        return [environ["wsgi.input"].read() or b"done"]
    """


def test_the_oldest_that_waits_for_a_thread_of_wsgi_gets_503(run):
    server = run(WSGI, "--threads", "2", "--backlog-of-threads", "2")
    links = []
    for _ in range(6):
        links.append(server.connect())
        links[-1].sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        time.sleep(0.03)
    answers = [link.recv(4096) for link in links]
    for link in links:
        link.close()
    assert [int(answer.split()[1]) for answer in answers] == [200, 200, 503, 503, 200, 200]
    assert all(b"Retry-After: 1\r\n" in answers[at] for at in (2, 3))


def test_a_request_waits_for_a_thread_of_wsgi_for_its_time_only(run):
    server = run(WSGI, "--threads", "2", "--blocking-queue-timeout", "100ms")
    answers, _ = server.ask_at_once("/slow", 4)
    assert statuses(answers) == [200, 200, 503, 503]
    # The threads are free again, and none was lost.
    for _ in range(20):
        assert server.get("/").body == b"done"


def test_a_slow_body_keeps_no_thread_of_wsgi_from_others(run):
    server = run(WSGI, "--threads", "2", "--backlog-of-threads", "1")
    slow = [server.connect() for _ in range(5)]
    for link in slow:
        link.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nslo")
    time.sleep(0.1)
    assert server.get("/").body == b"done"
    for link in slow:
        link.sendall(b"w")
        assert b"slow" in link.recv(4096)
        link.close()


def test_processes_share_max_memory(run):
    """A body that is more than a quarter of the memory of its process cannot be held."""
    program = """
        import gustnado

        app = gustnado.App()

        @app.post("/", body="memory")
        def length(request):
            return str(len(request.body))
        """
    flags = ("--max-memory", "40m", "--max-worker-rss", "0", "--limit-body-bytes", "16m")
    body = b"b" * (6 << 20)
    assert run(program, *flags).post("/", body).body == str(len(body)).encode()
    assert run(program, *flags, "--workers", "2").post("/", body).status == 503
