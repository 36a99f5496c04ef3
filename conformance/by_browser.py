"""Chromium without a window: loads a page, with its own settings of TLS."""

import base64
import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from outcomes import Case, expect, first_line
from served import Lab

NAME = "Chromium"


def program() -> str:
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return next((path for path in found if path), "")


def version() -> str:
    return first_line([program(), "--version"]) if program() else ""


def key_of(lab: Lab, name: str) -> str:
    """The digest of a certificate's public key, by which one certificate is trusted."""
    pem = ["openssl", "x509", "-in", lab.file(f"{name}.pem"), "-pubkey", "-noout"]
    public = subprocess.run(pem, capture_output=True, check=True, timeout=10).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=public,
                         capture_output=True, check=True, timeout=10).stdout
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


def begin(profile: Path, hosts: str, key: str) -> list[str]:
    """The words of each call: these hosts are at 127.0.0.1, and this key is trusted."""
    return [program(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={profile}", f"--host-resolver-rules=MAP {hosts} 127.0.0.1",
            f"--ignore-certificate-errors-spki-list={key}"]


def load(lab: Lab, path: str, *words: str, host: str = "localhost", pair: str = "p256") -> str:
    port = lab.server("sites").port
    profile = lab.files / "chromium"
    shutil.rmtree(profile, ignore_errors=True)
    command = [*begin(profile, host, key_of(lab, pair)), *words, "--dump-dom",
               f"https://{host}:{port}{path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout


def cases(lab: Lab) -> Iterator[Case]:
    yield "the page", lambda: loads(lab)
    for name in ("p384", "rsa"):
        yield f"the page of {name}.test", lambda name=name: loads(
            lab, host=f"{name}.test", pair=name)
    yield "the page by TLS 1.2", lambda: loads(lab, "--ssl-version-max=tls1.2")
    yield "a page whose script loads 20 files and 1 MB", lambda: scripted(lab)
    yield "an unknown certificate is Chromium's to refuse", lambda: expect(
        "The page is here." not in load(lab, "/", pair="p384"), "it loads")


def loads(lab: Lab, *words: str, **more: str) -> None:
    server = lab.server("sites")
    before = server.counters()
    text = load(lab, "/", *words, **more)
    expect("The page is here." in text, f"another page: {text[:300]}")
    server.moved(before, "handshakes", 1)


SCRIPT = """<!doctype html><p id=told>waiting</p><script>
(async () => {
  let count = 0;
  for (let n = 0; n < 20; n++) count += (await (await fetch("/index.html?" + n)).text()).length;
  const all = await (await fetch("/1m.bin")).arrayBuffer();
  document.getElementById("told").textContent = "loaded " + count + " " + all.byteLength;
})();
</script>
"""


def scripted(lab: Lab) -> None:
    (lab.files / "www" / "script.html").write_text(SCRIPT)
    page = len((lab.files / "www" / "index.html").read_text())
    text = load(lab, "/script.html", "--virtual-time-budget=10000")
    expect(f"loaded {20 * page} {1 << 20}" in text, f"it says {text[-200:]}")
