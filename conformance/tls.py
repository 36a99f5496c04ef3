#!/usr/bin/env python3
"""HTTPS against other people's clients: whether each is served, or refused, as it has to be.

  conformance/tls.py --server target/release/gustnado           all clients, some minutes
  conformance/tls.py --server target/release/gustnado --quick   openssl, curl and Python's ssl
  conformance/tls.py --server PATH --only java,go               these clients
  conformance/tls.py --server PATH --report PAGE                writes the page, too

A client that is not installed is skipped, with a line that names it, and never passes. The last
line has the numbers of cases that passed and failed; what fails makes the exit status 1.
"""

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path

import certificates
import outcomes
import page
from served import Lab

# (By module: by_openssl and so on.)
QUICK = ["openssl", "curl", "python"]
CLIENTS = [*QUICK, "gnutls", "nss", "go", "java", "browser", "offers", "attacks",
           "testssl", "tlsfuzzer"]


def chosen(asked: argparse.Namespace) -> list[str]:
    if asked.only:
        return asked.only.split(",")
    return [*QUICK, "offers", "attacks"] if asked.quick else CLIENTS


def run_all(asked: argparse.Namespace, files: Path, tally: outcomes.Tally) -> dict[str, str]:
    """Returns what each client says of its version, in the order of the page."""
    versions = {}
    records = ["own", "rustls"] if asked.records == "both" else [asked.records]
    clients = [importlib.import_module(f"by_{name}") for name in chosen(asked)]
    for client in clients:
        versions[client.NAME] = client.version()
        if not versions[client.NAME]:
            tally.missing.append(client.NAME)
            print(f"skipped: {client.NAME}", flush=True)
    for name in records:
        lab = Lab(asked.server, files, name, asked.quick)
        try:
            for client in clients:
                if versions[client.NAME]:
                    outcomes.run(tally, client.NAME, name, client.cases(lab))
            outcomes.run(tally, "the servers", name, lab.ends())
        finally:
            lab.kill()
    return versions


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--server", type=Path, required=True, metavar="PATH")
    words.add_argument("--records", choices=["own", "rustls", "both"], default="both")
    words.add_argument("--quick", action="store_true", help="what takes less than 20 seconds")
    words.add_argument("--only", default="", metavar="NAMES", help=",".join(CLIENTS))
    words.add_argument("--report", type=Path, metavar="PAGE")
    asked = words.parse_args()
    asked.server = asked.server.absolute()
    if not asked.server.exists():
        words.error(f"{asked.server} is not there: cargo build --release -p gustnado-cli")
    if asked.report:
        page.commit()
    tally, began = outcomes.Tally(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        files = certificates.make(Path(folder))
        versions = run_all(asked, files, tally)
    passed, failed = tally.count("passed"), tally.count("failed")
    if asked.report:
        page.write(asked.report, tally, versions)
    outcomes.say(f"{time.monotonic() - began:.0f} s, {tally.count('skipped')} cases skipped")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 0 if failed == 0 and passed else 1


if __name__ == "__main__":
    sys.exit(main())
