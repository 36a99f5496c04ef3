"""Java's own TLS, by the program in `java`: versions, ciphers, sessions, certificates, bodies."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from outcomes import Case, Unmet, expect, first_line
from served import Lab

NAME = "Java"
SOURCE = Path(__file__).resolve().parent / "java" / "Client.java"


def program() -> str:
    """The newest one that is installed, or the one that JAVA_HOME names."""
    if home := os.environ.get("JAVA_HOME"):
        return f"{home}/bin/java"

    def release(path: Path) -> int:
        found = re.search(r"(\d+)", path.parent.parent.name.replace("java-1.", ""))
        return int(found[1]) if found else 0

    installed = sorted(Path("/usr/lib/jvm").glob("*/bin/java"), key=release)
    return str(installed[-1]) if installed else "java"


def version() -> str:
    return first_line([program(), "--version"])


def keys(lab: Lab) -> None:
    for name in ("good", "foreign", "revoked"):
        subprocess.run(["openssl", "pkcs12", "-export", "-in", lab.file(f"{name}.pem"), "-inkey",
                        lab.file(f"{name}.key"), "-passout", "pass:password", "-out",
                        lab.file(f"{name}.p12")], check=True, capture_output=True, timeout=20)


def cases(lab: Lab) -> Iterator[Case]:
    """Its own cases, which one run prints the results of."""
    keys(lab)
    limit = lab.files / "java.security"
    limit.write_text("jdk.tls.keyLimits=AES/GCM/NoPadding KeyUpdate 2^20\n")
    found, errors = run(lab, [], [])
    more, more_errors = run(lab, [f"-Djava.security.properties={limit}"], ["replaced"])
    for state, name, reason in found + more:
        yield name, lambda state=state, reason=reason: told(state, reason)
    yield "all of its cases have run", lambda: expect(
        len(found + more) == 25, f"{len(found)}, {len(more)} cases: {errors} {more_errors}")


def run(lab: Lab, options: list[str], words: list[str]) -> tuple[list[tuple[str, ...]], str]:
    """The results, each with its name and reason; and what Java said besides."""
    command = [program(), *options, str(SOURCE), str(lab.server("sites").port), str(lab.files)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=180)
    line = r"^(passed|failed): (TLSv\d\.\d: [^:\n]*)(.*)$"
    return re.findall(line, done.stdout, re.MULTILINE), done.stderr[-300:]


def told(state: str, reason: str) -> None:
    if state != "passed":
        raise Unmet(reason)
