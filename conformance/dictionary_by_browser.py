#!/usr/bin/env python3
"""Compression dictionaries (RFC 9842) in Chromium without a window: a changed bundle of 1.1 MB
comes as its difference to the one that the browser has.

  conformance/dictionary_by_browser.py --server PATH

`PATH` is that of `gustnado`. Two visitors load the page of release 1, and then the link is swapped.
The first one that comes again gets release 2 as it is and lets the server make the delta; the
second one gets that. Needs Chromium, and playwright in the Python that runs this. Everything is on
loopback. The last line has the numbers of cases that passed and failed; what fails makes the exit
status 1.
"""

import argparse
import os
import random
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import by_browser
import certificates
import outcomes
from autobahn import await_port, free_port
from outcomes import expect

try:
    from playwright.sync_api import Browser, Page, Response, sync_playwright
except ImportError:
    sync_playwright = None

PATIENCE_S = 20
BUNDLE_BYTES = 1_100_000
NAMES = {1: "main.0a1b2c3d.js", 2: "main.9f2c1b7a.js"}
PAGE = "<!doctype html><p id=told>waiting</p><script src=/assets/{name}></script>\n"
END = "document.getElementById('told').textContent = 'release {release}, ' + f{last}(1);\n"
# What the second visitor's bundle may take.
PERCENT_MAX = 8


def bundle(release: int) -> str:
    """A program. In each release, some two hundred lines are its own."""
    dice, own, lines, size, at = random.Random(7), random.Random(release), [], 0, 0
    while size < BUNDLE_BYTES:
        word = "".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=12))
        if at % 100 == 3:
            word = "".join(own.choices("abcdefghijklmnopqrstuvwxyz", k=12))
        lines.append(f"function f{at}(x) {{ return x + '{word}'.length; }}\n")
        size, at = size + len(lines[-1]), at + 1
    return "".join(lines) + END.format(release=release, last=at - 1)


class Site:
    """A server of two releases, of which the first is the current one."""

    def __init__(self, program: Path, folder: Path, words: list[str]):
        self.folder, self.port = folder, free_port()
        for release, name in NAMES.items():
            assets = folder / "releases" / str(release) / "assets"
            assets.mkdir(parents=True)
            (assets / name).write_text(bundle(release))
            (assets.parent / "index.html").write_text(PAGE.format(name=name))
        self.swap(1)
        command = [str(program), "serve", str(folder / "current"), "--port", str(self.port),
                   "--tls-cert", str(folder / "p256.chain.pem"),
                   "--tls-key", str(folder / "p256.key"), "--metrics-path", "/metrics",
                   "--spa", "--keep-old-assets", "1h", "--compress", *words]
        clean = {key: value for key, value in os.environ.items() if not key.startswith("GUSTNADO_")}
        with (folder / "server.log").open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=clean)
        await_port(self.process, command[0], self.port)

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}/"

    def swap(self, release: int) -> None:
        (self.folder / "next").symlink_to(f"releases/{release}")
        (self.folder / "next").rename(self.folder / "current")

    def fetch(self, path: str) -> str:
        trusted = ssl.create_default_context(cafile=self.folder / "root.pem")
        with urllib.request.urlopen(self.url + path, context=trusted, timeout=10) as response:
            return response.read().decode()

    def counter(self, name: str) -> int:
        found = re.search(rf"^gustnado_{name}(?:_total)? (\d+)$", self.fetch("metrics"), re.M)
        expect(found, f"no counter {name}")
        return int(found[1])

    def await_release(self, release: int) -> None:
        """A worker follows within two seconds, each by itself: so twice in a row does for all."""
        deadline = time.monotonic() + PATIENCE_S
        time.sleep(2)
        while NAMES[release] not in self.fetch(""):
            expect(time.monotonic() < deadline, "the server does not follow the link")
            time.sleep(0.1)

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def load(page: "Page", url: str, release: int) -> "Response":
    """Loads the page, which has to run, and returns the response with its bundle."""
    with page.expect_response(lambda response: NAMES[release] in response.url) as bundle_response:
        page.goto(url)
    page.get_by_text(f"release {release},").wait_for()
    response = bundle_response.value
    response.finished()
    return response


def play(browser: "Browser", site: Site) -> str:
    pages = [browser.new_context().new_page() for _ in range(2)]
    for page in pages:
        page.set_default_timeout(PATIENCE_S * 1_000)
        first = load(page, site.url, 1)
        announced = first.all_headers().get("use-as-dictionary")
        expect(announced == 'match="main.*.js"', f"Use-As-Dictionary is {announced}")
    site.swap(2)
    site.await_release(2)
    whole = load(pages[0], site.url, 2)
    asked = whole.request.all_headers()
    expect(asked.get("available-dictionary"), f"Chromium names no dictionary: {asked}")
    deadline = time.monotonic() + PATIENCE_S
    while site.counter("deltas_made") == 0:
        expect(time.monotonic() < deadline, "no delta is made")
        time.sleep(0.1)
    delta = load(pages[1], site.url, 2)
    coding = delta.all_headers().get("content-encoding")
    expect(coding == "dcz", f"Content-Encoding is {coding}")
    expect(site.counter("deltas_sent") == 1, f"{site.counter('deltas_sent')} deltas were sent")
    text = bundle(2)
    expect(delta.text() == text, "what Chromium has decoded is another text")
    size = int(delta.all_headers()["content-length"])
    percent = 100 * size / len(text)
    expect(percent < PERCENT_MAX, f"{size} bytes of {len(text)}")
    return f"{size} bytes of {len(text)}, {percent:.1f} %, " \
           f"{whole.all_headers()['content-length']} by {whole.all_headers()['content-encoding']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", type=Path, required=True)
    asked = parser.parse_args()
    if sync_playwright is None or not by_browser.program():
        print("skipped: Chromium or playwright is not installed")
        return 0
    passed = failed = 0
    for version, words in (("HTTP/2", []), ("HTTP/1.1", ["--http2=false"])):
        with tempfile.TemporaryDirectory(prefix="conformance-") as name, \
                sync_playwright() as playwright:
            folder = Path(name)
            certificates.make(folder)
            lab = SimpleNamespace(file=lambda name, folder=folder: str(folder / name))
            trusted = f"--ignore-certificate-errors-spki-list={by_browser.key_of(lab, 'p256')}"
            browser = playwright.chromium.launch(
                executable_path=by_browser.program(),
                args=["--no-sandbox", "--disable-gpu", trusted])
            site = Site(asked.server, folder, words)
            try:
                told = play(browser, site)
                passed += 1
                print(f"passed: by {version}: {told}")
            except Exception as error:
                failed += 1
                print(f"failed: by {version}: {error}")
            finally:
                site.end()
            print(f"Chromium {browser.version}")
            browser.close()
    outcomes.say(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
