"""Libraries of asyncio's with Twisted: a loop in a thread of its own, and a bridge each way.

    python deferred_future.py [PORT]; curl http://127.0.0.1:8888/
"""

import asyncio
import sys
import threading

from gustnado.twisted import install

install()

from twisted.internet import defer, reactor, task  # noqa: E402
from twisted.web import resource, server  # noqa: E402

loop = asyncio.new_event_loop()


def deferred_of(coroutine):
    """Runs a coroutine in the loop's thread, and returns a Deferred for the reactor's."""
    ended = defer.Deferred()

    def begin():
        running = defer.Deferred.fromFuture(loop.create_task(coroutine))
        running.addBoth(lambda result: reactor.callFromThread(ended.callback, result))

    loop.call_soon_threadsafe(begin)
    return ended


def future_of(function, *words):
    """Calls a function in the reactor's thread. For coroutines: what it returns, or its Deferred
    brings, can be awaited."""
    ended = defer.Deferred()

    def begin():
        called = defer.maybeDeferred(function, *words)
        called.addBoth(lambda result: loop.call_soon_threadsafe(ended.callback, result))

    reactor.callFromThread(begin)
    return ended.asFuture(loop)


def in_the_reactor(word):
    """In place of something that Twisted does."""
    if word == "fail":
        raise ValueError("there is no such thing")
    return task.deferLater(reactor, 0.01, lambda: f"{word}, {threading.current_thread().name}")


async def in_the_loop(word):
    """In place of something that a library of asyncio's does."""
    await asyncio.sleep(0.01)
    answer = await future_of(in_the_reactor, word)
    return f"{threading.current_thread().name} heard of: {answer}\n".encode()


class Both(resource.Resource):
    isLeaf = True

    def render_GET(self, request):
        word = request.args.get(b"word", [b"a word"])[0].decode()
        answered = deferred_of(in_the_loop(word))
        answered.addErrback(lambda failure: b"failed: %s\n" % failure.getErrorMessage().encode())
        answered.addCallback(lambda answer: (request.write(answer), request.finish()))
        return server.NOT_DONE_YET


thread = threading.Thread(target=loop.run_forever, name="the loop", daemon=True)
thread.start()
reactor.addSystemEventTrigger("after", "shutdown", loop.call_soon_threadsafe, loop.stop)
threading.current_thread().name = "the reactor"
reactor.listenTCP(int(sys.argv[1]) if len(sys.argv) > 1 else 8888, server.Site(Both()))
reactor.run()
