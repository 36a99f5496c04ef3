"""The page of results: what each client found, and what is known to differ."""

import time
from pathlib import Path

from outcomes import Tally, first_line

ROOT = Path(__file__).resolve().parent.parent
HEAD = """# HTTPS against other clients

Written by `make conformance`, which runs [conformance/tls.py](../../conformance/README.md): clients
that others have written connect to servers with certificates made by openssl, and each case says
what has to come of it. Each runs with both layers of records (`--tls-records`).

{date}, commit {commit}.

**{passed:,} cases passed, {failed:,} failed. {differs:,} differ as listed below.**
"""


def commit() -> str:
    """The commit of the tree; a page of changed sources is refused."""
    git = ["git", "-C", str(ROOT)]
    changed = [*git, "status", "--porcelain", "--", ".", ":!docs/results"]
    if first_line(changed):
        raise SystemExit("no page is written of local changes: commit them first")
    return first_line([*git, "rev-parse", "--short=12", "HEAD"])


def write(path: Path, tally: Tally, versions: dict[str, str]) -> None:
    text = HEAD.format(
        date=time.strftime("%Y-%m-%d", time.gmtime()), commit=commit(),
        passed=tally.count("passed"), failed=tally.count("failed"),
        differs=tally.count("differs"))
    text += by_client(tally, versions) + named_cases(tally) + differing(tally)
    path.write_text(text)


def by_client(tally: Tally, versions: dict[str, str]) -> str:
    lines = ["", "| client | version | records | passed | differ | failed | skipped |",
             "| --- | --- | --- | ---: | ---: | ---: | ---: |"]
    for client, version in versions.items():
        if not version:
            lines.append(f"| {client} | not installed | | | | | all |")
        for records in ("own", "rustls"):
            ours = [one.state for one in tally.outcomes
                    if (one.client, one.records) == (client, records)]
            if ours:
                counts = [f"{ours.count(state):,}"
                          for state in ("passed", "differs", "failed", "skipped")]
                lines.append(f"| {client} | {version} | {records} | " + " | ".join(counts) + " |")
    skipped = sorted({f"- {one.client}: {one.name}: {one.told}" for one in tally.outcomes
                      if one.state == "skipped"})
    return "\n".join([*lines, *(["", "Skipped:", "", *skipped] if skipped else []), ""])


def named_cases(tally: Tally) -> str:
    """The cases of each client; of tlsfuzzer, which has thousands, its scripts."""
    lines = ["", "## Cases", ""]
    for client in dict.fromkeys(one.client for one in tally.outcomes):
        names = dict.fromkeys(one.name.split(": ")[0] if client == "tlsfuzzer" else one.name
                              for one in tally.outcomes if one.client == client)
        kind = "scripts" if client == "tlsfuzzer" else "cases"
        lines += [f"### {client}", "", f"{len(names)} {kind}: " + "; ".join(names) + ".", ""]
    return "\n".join(lines)


def differing(tally: Tally) -> str:
    """A row for each reason, with the number of cases and a few of their names."""
    rows: dict[tuple[str, str], dict[str, list[str]]] = {}
    for one in tally.outcomes:
        if one.state == "differs":
            rows.setdefault((one.client, one.told), {}).setdefault(one.records, []).append(one.name)
    lines = ["## Known differences", "",
             "A case that is listed must differ, and a case that is not must not: both fail the "
             "suite. Reasons that begin", "with `a defect` are the server's.", "",
             "| client | reason | own | rustls | which |", "| --- | --- | ---: | ---: | --- |"]
    for (client, reason), names in rows.items():
        own, rustls = names.get("own", []), names.get("rustls", [])
        parts = sorted({name.split(": ")[0] if client == "tlsfuzzer" else name
                        for name in own + rustls})
        which = "; ".join(part.replace("|", "\\|") for part in parts)
        lines.append(f"| {client} | {reason} | {len(own):,} | {len(rustls):,} | {which} |")
    return "\n".join(lines) + "\n"
