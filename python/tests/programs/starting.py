"""What all programs of this folder begin and end with.

Their words are: the reactor, `epoll` or `gustnado`; the port; and their own words.
"""

import sys

WORDS = sys.argv[3:]


def install():
    """Takes the reactor of the first word: to be called before any other import of Twisted's."""
    if sys.argv[1] == "gustnado":
        from gustnado.twisted import install
        install(cyclone=True)
    else:
        from twisted.internet.epollreactor import install
        install()


def listen(factory):
    """Serves on the port of the second word, until the process is ended."""
    from twisted.internet import reactor

    reactor.listenTCP(int(sys.argv[2]), factory, interface="127.0.0.1")
    reactor.run()
