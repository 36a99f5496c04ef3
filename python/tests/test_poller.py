"""The poller under Twisted's reactor."""

import subprocess
import sys

PROGRAM = """
from gustnado._gustnado import Poller, TwistedConnection

poller = Poller()
poller.answer_requests(lambda name: name, lambda number, error: None)
ended = []

class Ends:
    requestFactory = None

    def __init__(self, number):
        self.number = number

    def __del__(self):
        # A connection that closes another one when it goes.
        poller.unserve(self.number)
        ended.append(self.number)

def link(number):
    server, channel = Ends(number), object()
    return TwistedConnection(number, server, None, None, channel, [], None, None, None, None)

poller.serve(5, link(6))
poller.serve(6, link(7))
poller.serve(5, link(8))
poller.unserve(5)
print(sorted(ended))
"""


def test_a_connection_may_end_others_when_it_goes():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True,
                          timeout=20)
    assert done.stdout == "[6, 7, 8]\n", done
