"""testssl.sh: a case for each of its findings that it rates, which has to be good.

Needs a copy of it in `target/conformance/testssl`, and one of dig, host, drill and nslookup, which
it asks nothing of the network.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator

from by_tlsfuzzer import TARGET
from outcomes import Case, expect, first_line
from served import HOST, Lab

NAME = "testssl.sh"
FOLDER = TARGET / "conformance" / "testssl"
# What it has to say OK of, in any case.
WANTED = ["SSLv2", "SSLv3", "TLS1_2", "TLS1_3", "cipherlist_NULL", "cipherlist_aNULL",
          "cipherlist_EXPORT", "cipherlist_LOW", "FS", "cert_trust", "cert_chain_of_trust",
          "heartbleed", "CCS", "ticketbleed", "ROBOT", "secure_renego", "secure_client_renego",
          "CRIME_TLS", "POODLE_SSL", "SWEET32", "FREAK", "DROWN", "LOGJAM", "BEAST", "LUCKY13",
          "RC4"]
# Of the program and the machine, not of the server.
NOT_RATED = ("INFO", "WARN", "DEBUG")


def version() -> str:
    tools = [shutil.which(name) for name in ("dig", "host", "drill", "nslookup", "bash")]
    if not (FOLDER / "testssl.sh").exists() or not any(tools[:-1]) or not tools[-1]:
        return ""
    return "testssl.sh " + first_line(["git", "-C", str(FOLDER), "log", "-1", "--format=%h of %cs"])


def cases(lab: Lab) -> Iterator[Case]:
    result = lab.files / f"testssl-{lab.records}.json"
    address = f"https://localhost:{lab.server('sites').port}"
    command = ["bash", "./testssl.sh", "--quiet", "--color", "0", "--warnings", "batch", "--nodns",
               "none", "--ip", HOST, "--add-ca", lab.file("root.pem"), "--openssl",
               shutil.which("openssl") or "openssl", "--jsonfile", str(result), address]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=400,
                          stdin=subprocess.DEVNULL)
    found = json.loads(result.read_text()) if result.exists() else []
    rated = [one for one in found if one["severity"] not in NOT_RATED]
    names = {one["id"] for one in rated}
    for one in rated:
        yield one["id"], lambda one=one: expect(
            one["severity"] == "OK", f"{one['severity']}: {one['finding']}")
    yield "it has rated all that it has to", lambda: expect(
        names.issuperset(WANTED), f"not {set(WANTED) - names}: {done.stdout[-300:]}")
