"""A handler in Python, and the same next to a thread that computes all the time."""

import threading

import gustnado

app = gustnado.App()


@app.get("/")
def hello():
    return "Hello, world!"


def busy():
    """A factory."""
    def compute():
        number = 0
        while True:
            number += 1

    threading.Thread(target=compute, daemon=True).start()
    return app
