"""Numbers into words: a page, and the raw numbers that it is made from."""

import json
from pathlib import Path


def load_results(path: Path) -> dict:
    """Earlier results, so that a run of one scenario replaces only that one."""
    try:
        return json.loads(path.read_text())["scenarios"]
    except (OSError, ValueError, KeyError):
        return {}


def write(folder: Path, name: str, scenarios: dict) -> Path:
    """Writes the raw numbers and the report; returns the report's path."""
    folder.mkdir(parents=True, exist_ok=True)
    raw = {"format": 1, "scenarios": scenarios}
    (folder / f"{name}.json").write_text(json.dumps(raw, indent=1) + "\n")
    page = folder / f"{name}.md"
    page.write_text(markdown(name, scenarios))
    return page


def markdown(name: str, scenarios: dict) -> str:
    parts = [
        "# Counts, connections held, and the start\n",
        "Made by `make bench`; [README.md](README.md) says how to read it.\n",
        where(scenarios),
        figures(scenarios),
    ]
    for key, scenario in scenarios.items():
        parts.append(section(key, scenario))
    return "\n".join(parts).rstrip() + "\n"


def where(scenarios: dict) -> str:
    """The machines and commits, usually one."""
    seen: dict[str, list[str]] = {}
    for key, scenario in scenarios.items():
        meta = scenario["meta"]
        versions = ", ".join(text for text in meta["versions"].values() if text)
        line = (
            f"commit {meta['commit']}, {meta['date'][:10]}; Linux {meta['kernel']}, "
            f"{meta['cpus']}, {meta['memory_mb']:,} MB, "
            f"{meta['descriptors']:,} descriptors; {versions}"
        )
        seen.setdefault(line, []).append(key)
    if len(seen) == 1:
        return f"Measured at {next(iter(seen))}.\n"
    return "\n".join(f"- {', '.join(keys)}: {line}" for line, keys in seen.items()) + "\n"


def figures(scenarios: dict) -> str:
    """The table of figures to reach, and what was found."""
    lines = ["## Figures to reach\n", "| work | measure | reach | found | |"]
    lines.append("|---|---|---|---|---|")
    for scenario in scenarios.values():
        for verdict in scenario["verdicts"]:
            failed = f", {verdict['failed']} failed" if verdict.get("failed") else ""
            met = "reached" if verdict["met"] else "**not reached**"
            lines.append(
                f"| {scenario['title']} | {verdict['measure']} | {verdict['reach']} | "
                f"{verdict['found']}{failed} | {met} |"
            )
    return "\n".join(lines) + "\n"


def section(key: str, scenario: dict) -> str:
    lines = [f"## {scenario['title']}\n", f"`{key}`: {scenario['how']}.", ""]
    if scenario["note"]:
        lines += [scenario["note"], ""]
    if scenario["rows"]:
        lines += TABLES[scenario["kind"]](scenario["rows"])
    for who, why in scenario["missing"].items():
        lines += ["", f"Not measured: {who}: {why}."]
    return "\n".join(lines).rstrip() + "\n"


def instruction_table(rows: list[dict]) -> list[str]:
    heads = [key for key in rows[0] if key != "name"]
    lines = ["| server | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for row in rows:
        counts = [f"{row[head]:,.0f}" if head in row else "-" for head in heads]
        lines.append(f"| {row['name']} | " + " | ".join(counts) + " |")
    return lines


def system_call_table(rows: list[dict]) -> list[str]:
    lines = ["| server | per request | of these | requests |", "|---|---|---|---|"]
    for row in rows:
        calls = ", ".join(f"{name} {count:.3f}" for name, count in row["calls"].items())
        lines.append(
            f"| {row['name']} | {row['per_request']:.3f} | {calls} | {row['requests']:,} |"
        )
    return lines


def idle_table(rows: list[dict]) -> list[str]:
    lines = [
        "| server | workers | open | failed | opened in | memory empty | memory full | bytes each "
        "| CPU | probe p50 | p99 | worst |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['name']} | {row['workers']} | {row['opened']:,} | {row['failed']} | "
            f"{row['seconds']:.1f} s | {megabytes(row['empty_bytes'])} | "
            f"{megabytes(row['full_bytes'])} | {row['per_connection']:.0f} | "
            f"{row['cpu_ms']:.1f} ms | {duration(row['p50_us'])} | {duration(row['p99_us'])} | "
            f"{duration(row['worst_us'])} |"
        )
    return lines


def million_table(rows: list[dict]) -> list[str]:
    row = rows[0]
    facts = [
        ("open", f"{row['opened']:,}"),
        ("failed", f"{row['failed']:,}"),
        ("opened in", f"{row['seconds']:.1f} s"),
        ("workers, threads", f"{row['workers']}, {row['threads']}"),
        ("process memory, empty", megabytes(row["empty_bytes"])),
        ("process memory, full", megabytes(row["full_bytes"])),
        ("bytes each over the empty server", f"{row['per_connection']:.0f}"),
        ("idle CPU over 10 s", f"{row['cpu_ms']:.1f} ms"),
        ("rate among them, `wrk -c32`", f"{row['per_second']:,.0f} requests/s"),
        ("p50, p99 among them", f"{duration(row['p50_us'])}, {duration(row['p99_us'])}"),
        ("still alive, every 20th probed", f"{row['swept_alive']:,} of {row['swept']:,}"),
        ("all closed in", f"{row['close_seconds']:.1f} s"),
        ("exit status of the server", f"{row['exit_status']}"),
    ]
    return ["| what | found |", "|---|---|"] + [f"| {what} | {found} |" for what, found in facts]


def start_table(rows: list[dict]) -> list[str]:
    lines = [
        "| server | to the first response | slowest | memory | binary |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['name']} | {row['ms']:.1f} ms | {row['ms_max']:.1f} ms | "
            f"{megabytes(row['rss_bytes'])} | {megabytes(row['binary_bytes'])} |"
        )
    return lines


def size_table(rows: list[dict]) -> list[str]:
    lines = ["| command | bytes |", "|---|---|"]
    return lines + [f"| {row['name']} | {row['bytes']:,} |" for row in rows]


TABLES = {
    "instructions": instruction_table,
    "size": size_table,
    "system_calls": system_call_table,
    "idle": idle_table,
    "million": million_table,
    "start": start_table,
}


def megabytes(count: float) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.0f} KB"


def duration(microseconds: float | None) -> str:
    if microseconds is None:
        return "-"
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.1f} s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.1f} ms"
    return f"{microseconds:.0f} us"
