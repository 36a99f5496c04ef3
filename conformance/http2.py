#!/usr/bin/env python3
"""HTTP/2 against other people's clients and suites: h2spec, curl, nghttp, h2load, Go, python-hyper,
httpx, Chromium, and a gRPC service with three clients.

  conformance/http2.py --server target/release/gustnado          all that are installed
  conformance/http2.py --server PATH --quick                     h2spec, curl, Go and h2
  conformance/http2.py --server PATH --only go,grpc-go           these
  conformance/http2.py --server PATH --report PAGE               writes the page, too

Each runs by TLS and in clear. A client that is not installed is skipped, with a line that names it,
and never passes. The last line has the numbers of cases that passed and failed; what fails makes
the exit status 1.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import certificates
import h2_by_adversary
import h2_by_axum
import h2_by_browser
import h2_by_go
import h2_by_grpc
import h2_by_httpx
import h2_by_hyper
import h2_by_tools
import outcomes
import page
from h2_lab import WAYS, Lab, tool
from outcomes import Case


@dataclass
class Client:
    """A client: what it says of its version, where it is installed; and its cases."""

    version: Callable[[], str]
    cases: Callable[[Lab, str], Iterator[Case]]


def installed(program: str) -> Callable[[], str]:
    def version() -> str:
        # (curl's goes on with the versions of its libraries.)
        told = outcomes.first_line([tool(program), "--version"]) if tool(program) else ""
        return told.removeprefix("Version: ").split(" (")[0]

    return version


CLIENTS = {
    "h2spec": Client(installed("h2spec"), h2_by_tools.by_h2spec),
    "curl": Client(installed("curl"), h2_by_tools.by_curl),
    "nghttp": Client(installed("nghttp"), h2_by_tools.by_nghttp),
    "h2load": Client(installed("h2load"), h2_by_tools.by_h2load),
    "go": Client(h2_by_go.version, h2_by_go.cases),
    "h2": Client(h2_by_hyper.version, h2_by_hyper.cases),
    "adversary": Client(h2_by_adversary.version, h2_by_adversary.cases),
    "httpx": Client(h2_by_httpx.version, h2_by_httpx.cases),
    "browser": Client(h2_by_browser.version, h2_by_browser.cases),
    "axum": Client(h2_by_axum.version, h2_by_axum.cases),
    "tonic": Client(h2_by_grpc.tonic_version, h2_by_grpc.by_tonic),
    "grpc-go": Client(h2_by_grpc.go_version, h2_by_grpc.by_go),
    "grpcio": Client(h2_by_grpc.python_version, h2_by_grpc.by_python),
}
QUICK = ["h2spec", "curl", "go", "h2", "adversary"]
HEAD = """# HTTP/2 against other clients

Written by `make conformance-http2`, which runs [conformance/http2.py](../../conformance/README.md):
clients that others have written connect to servers by TLS and in clear, and each case says what has
to come of it. `adversary` is python-hyper's `h2`, which breaks the rules.

{date}, commit {commit}.

**{passed:,} cases passed, {failed:,} failed, {skipped:,} were skipped.**

| client | version | way | passed | failed | skipped |
| --- | --- | --- | ---: | ---: | ---: |
"""


def write(path: Path, tally: outcomes.Tally, versions: dict[str, str]) -> None:
    text = HEAD.format(
        date=time.strftime("%Y-%m-%d", time.gmtime()), commit=page.commit(),
        passed=tally.count("passed"), failed=tally.count("failed"), skipped=tally.count("skipped"))
    for client, way in dict.fromkeys((one.client, one.records) for one in tally.outcomes):
        ours = [one.state for one in tally.outcomes if (one.client, one.records) == (client, way)]
        counts = " | ".join(str(ours.count(state)) for state in ("passed", "failed", "skipped"))
        text += f"| {client} | {versions.get(client, '')} | {way} | {counts} |\n"
    for name in tally.missing:
        text += f"| {name} | not installed | | | | all |\n"
    for title, state in (("Failed", "failed"), ("Skipped", "skipped")):
        lines = sorted({f"- {one.client}, {one.records}: {one.name}: {' '.join(one.told.split())}"
                        for one in tally.outcomes if one.state == state})
        text += "".join([f"\n{title}:\n\n", *(f"{line}\n" for line in lines)]) if lines else ""
    text += "\n## Cases\n"
    for client in dict.fromkeys(one.client for one in tally.outcomes):
        # (h2spec's are in its own list.)
        names = dict.fromkeys(one.name.split(":")[0] if client == "h2spec" else one.name
                              for one in tally.outcomes if one.client == client)
        text += f"\n### {client}\n\n" + "; ".join(names) + ".\n"
    path.write_text(text)


def run_all(asked: argparse.Namespace, lab: Lab, tally: outcomes.Tally) -> dict[str, str]:
    """Returns what each client says of its version."""
    names = asked.only.split(",") if asked.only else QUICK if asked.quick else list(CLIENTS)
    versions = {}
    for name in names:
        client = CLIENTS[name]
        versions[name] = client.version()
        if not versions[name]:
            tally.missing.append(name)
            print(f"skipped: {name}", flush=True)
            continue
        for way in WAYS:
            outcomes.run(tally, name, way, client.cases(lab, way))
    outcomes.run(tally, "the servers", "both", lab.ends())
    return versions


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--server", type=Path, required=True, metavar="PATH")
    words.add_argument("--quick", action="store_true", help="what takes less than 30 seconds")
    words.add_argument("--only", default="", metavar="NAMES", help=",".join(CLIENTS))
    words.add_argument("--report", type=Path, metavar="PAGE")
    asked = words.parse_args()
    if asked.report:
        page.commit()
    os.environ["NO_COLOR"] = "1"
    tally, began = outcomes.Tally(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        lab = Lab(asked.server.absolute(), certificates.make(Path(folder)))
        try:
            versions = run_all(asked, lab, tally)
        finally:
            lab.kill()
    if asked.report:
        write(asked.report, tally, versions)
    passed, failed = tally.count("passed"), tally.count("failed")
    outcomes.say(f"{time.monotonic() - began:.0f} s, {tally.count('skipped')} cases skipped")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 0 if failed == 0 and passed else 1


if __name__ == "__main__":
    sys.exit(main())
