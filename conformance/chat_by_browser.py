#!/usr/bin/env python3
"""The chats of the examples in Chromium without a window: two pages talk, and come back by
themselves when the server is started again.

  conformance/chat_by_browser.py --chat PATH [--python PATH]

`PATH`s are those of the example `chat_room`, and of a Python that has the package. Needs Chromium,
and playwright in the Python that runs this. Everything is on loopback. The last line has the
numbers of cases that passed and failed; what fails makes the exit status 1.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import by_browser
import certificates
import outcomes
from autobahn import await_port, free_port
from outcomes import expect

try:
    from playwright.sync_api import Browser, Page, sync_playwright
except ImportError:
    sync_playwright = None

EXAMPLES = Path(__file__).resolve().parent.parent / "python" / "examples"
# A page waits before it comes back, longer each time.
PATIENCE_MS = 30_000


class Chat:
    """A server at a port of its own, which may be ended and started again."""

    def __init__(self, command: list[str], folder: Path, settings: dict[str, str]):
        self.port = free_port()
        self.command = [word.format(port=self.port) for word in command]
        self.settings, self.log = settings, folder / "chat.log"
        self.requests = folder / "requests.log"
        self.start()

    def start(self) -> None:
        with self.log.open("a") as log:
            settings = os.environ | self.settings | {"GUSTNADO_ACCESS_LOG": str(self.requests)}
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=settings)
        await_port(self.process, self.command[0], self.port)

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def served(command: list[str], tls: bool) -> Iterator[tuple[Chat, str]]:
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder, settings = Path(name), {}
        certificates.make(folder)
        if tls:
            settings = {"GUSTNADO_TLS_CERT": str(folder / "p256.chain.pem"),
                        "GUSTNADO_TLS_KEY": str(folder / "p256.key")}
        chat = Chat(command, folder, settings)
        try:
            yield chat, f"{'https' if tls else 'http'}://localhost:{chat.port}/"
        finally:
            chat.end()


def pages(browser: "Browser", url: str) -> list["Page"]:
    """Two visitors, each with a profile of its own."""
    found = []
    for _ in range(2):
        context = browser.new_context(ignore_https_errors=True)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.goto(url)
        found.append(page)
    return found


def sees(page: "Page", text: str) -> None:
    page.get_by_text(text, exact=True).first.wait_for()


def is_lost(page: "Page", text: str) -> None:
    """(The code is soon that of a later attempt.)"""
    page.get_by_text(text).first.wait_for()


def say(page: "Page", field: str, text: str) -> None:
    page.fill(field, text)
    page.press(field, "Enter")


def rust(browser: "Browser", chat: Chat, url: str) -> None:
    first, second = pages(browser, url)
    for page, name in ((first, "Ada"), (second, "Bob")):
        say(page, "#say", name)
        sees(page, f"You are {name}.")
    say(first, "#say", "hello")
    sees(second, "Ada: hello")
    chat.end()
    is_lost(first, "Trying again…")
    chat.start()
    sees(first, "You are Ada.")
    sees(second, "You are Bob.")
    say(second, "#say", "here again")
    sees(first, "Bob: here again")


def python(browser: "Browser", chat: Chat, url: str) -> None:
    first, second = pages(browser, url)
    for page, name in ((first, "Ada"), (second, "Bob")):
        page.fill("#name", name)
        page.press("#name", "Tab")
    sees(first, "2 in hall")
    say(first, "#text", "hello")
    sees(second, "Ada: hello")
    chat.end()
    is_lost(first, "trying again")
    # What is written meanwhile is sent later.
    say(first, "#text", "written meanwhile")
    chat.start()
    sees(first, "Ada: written meanwhile")
    sees(second, "2 in hall")
    say(second, "#text", "here again")
    sees(first, "Bob: here again")


def versions(chat: Chat, path: str) -> set[str]:
    """The versions of HTTP by which WebSockets were opened."""
    lines = chat.requests.read_text().splitlines()
    return {line.split('"')[1].rsplit(" ", 1)[1] for line in lines if f" {path}" in line}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chat", type=Path, required=True)
    parser.add_argument("--python", type=Path)
    asked = parser.parse_args()
    if sync_playwright is None or not by_browser.program():
        print("skipped: Chromium or playwright is not installed")
        return 0
    ways = [("Rust", [str(asked.chat), "127.0.0.1:{port}"], rust, "/room")]
    if asked.python:
        command = [str(asked.python), str(EXAMPLES / "chat.py"), "{port}"]
        ways.append(("Python", command, python, "/rooms"))
    passed = failed = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=by_browser.program(), args=["--no-sandbox", "--disable-gpu"])
        for name, command, play, path in ways:
            for tls, version in ((False, "HTTP/1.1"), (True, "HTTP/2.0")):
                title = f"{name}, {'by TLS' if tls else 'in clear'}"
                with served(command, tls) as (chat, url):
                    try:
                        play(browser, chat, url)
                        for context in browser.contexts:
                            context.close()
                        chat.end()
                        found = versions(chat, path)
                        # (Without a connection of HTTP/2 a browser opens them by HTTP/1.1.)
                        expect(version in found, f"{version} was expected, found {found}")
                        passed += 1
                        print(f"passed: {title}, by {', '.join(sorted(found))}")
                    except Exception as error:
                        failed += 1
                        print(f"failed: {title}: {error}")
        print(f"Chromium {browser.version}")
        browser.close()
    outcomes.say(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
