"""What a run has shown: what is wrong in sentences, figures for the terminal, and the page."""

from . import served
from .attacks import KINDS

# Memory and descriptors are back if no more than this is left of what the attack has added.
MEMORY_SLACK_KB = 16 << 10
DESCRIPTORS_SLACK = 16


def problems(run, limits):
    """Sentences about what is wrong, none if all is well."""
    honest, found = run["attacked"], []
    backend = run["backend"]
    failures = honest["failures"]
    if failures:
        found.append(f"{len(failures)} of {honest['all']['count']} honest requests failed, "
                     f"the first: {failures[0]}")
    if run["quiet"]["failures"]:
        found.append(f"honest requests failed before the attack: {run['quiet']['failures'][0]}")
    p999 = honest["all"]["p999"]
    if p999 > limits.p999_max_ms:
        found.append(
            f"the honest client's 99.9th percentile is {p999:.1f} ms, "
            f"{limits.p999_max_ms:g} ms are allowed (the idle echo's was "
            f"{honest['echo']['p999']:.1f} ms: if that is much, too, the machine is busy)")
    before, after = run["before"], run["after"]
    grown = run["worst"]["memory_kb"] - before["memory_kb"]
    if grown > limits.max_memory_mb << 10:
        found.append(f"memory grew by {grown} KiB, {limits.max_memory_mb << 10} were given")
    for name, slack, unit in (("memory_kb", limits.memory_slack_kb, "KiB of memory"),
                              ("descriptors", DESCRIPTORS_SLACK, "descriptors"),
                              ("connections", 8, "connections")):
        left = after[name] - before[name]
        if left > slack:
            found.append(f"{left} {unit} more than before are held {run['after_s']:.0f} s after "
                         f"the attack, {slack} are allowed")
    found += faults(run)
    return [f"{backend}: {one}" for one in found]


def faults(run):
    """What the server itself says, and whether the attack was one."""
    found = []
    counters = run["counters"]
    for name in ("panics", "accept_failed", "accept_exhausted", "files_exhausted"):
        if counters.get(name):
            found.append(f"the server counts {counters[name]} {name}")
    if run["code"] != 0:
        found.append(f"the server ended with exit code {run['code']}, saying {run['said'][-3:]}")
    if any("panicked" in line for line in run["said"]):
        found.append(f"the server panicked: {[line for line in run['said'] if 'panicked' in line]}")
    for kind in KINDS:
        counts = run["attacks"].get(kind, {})
        if not counts.get("connections"):
            found.append(f"nothing was attacked by {kind}: the run shows nothing about it")
        if counts.get("mistakes"):
            found.append(f"attackers by {kind} made {counts['mistakes']} mistakes of their own")
        if counts.get("faults"):
            found.append(f"{counts['faults']} responses of 500, 502, 503 or 504 to {kind}")
    return found


def uses(run):
    """Rows of memory, descriptors and connections."""
    rows = []
    for name, title in (("memory_kb", "memory, MiB"), ("descriptors", "descriptors"),
                        ("connections", "connections open")):
        of = [run[when][name] for when in ("before", "worst", "after")]
        if name == "memory_kb":
            of = [f"{one / 1024:.1f}" for one in of]
        rows.append((title, *map(str, of)))
    return rows


def times(run):
    """Rows of latency: who, requests, median, 99.9th percentile, worst."""
    quiet, attacked = run["quiet"], run["attacked"]
    rows = [("echo, no attack", quiet["echo"], quiet["echo_failures"]),
            ("server, no attack", quiet["all"], len(quiet["failures"])),
            ("echo, under attack", attacked["echo"], attacked["echo_failures"]),
            ("**server, under attack**", attacked["all"], len(attacked["failures"]))]
    for name, one in attacked["lanes"].items():
        failed = sum(said.startswith(f"{name}:") for said in attacked["failures"])
        rows.append((f"- {name}", one, failed))
    rows.append(("client's own delay, under attack", attacked["late"], 0))
    return [(name, f"{one['count']:,}", f"{one['p50']:.2f}", f"{one['p999']:.1f}",
             f"{one['worst']:.1f}", str(failed)) for name, one, failed in rows]


def attacks_said(run):
    """Rows of attacks: connections and responses by class."""
    rows = []
    for kind in KINDS:
        counts = run["attacks"].get(kind, {})
        said = [f"{counts[one]:,} {one}" for one in ("2xx", "3xx", "4xx", "5xx") if counts.get(one)]
        if counts.get("received_bytes"):
            said.append(f"{counts['received_bytes'] >> 20:,} MiB received")
        rows.append((kind, f"{counts.get('connections', 0):,}", ", ".join(said) or "-"))
    return rows


TIMES_HEAD = ("client", "requests", "p50, ms", "p99.9, ms", "worst, ms", "failures")
USES_HEAD = ("", "before", "at the worst", "after")
ATTACKS_HEAD = ("attack", "connections", "what came back")


def table(head, rows):
    """A table of Markdown, which reads well on a terminal, too."""
    every = [head, *rows]
    widths = [max(len(row[at]) for row in every) for at in range(len(head))]
    every.insert(1, ["-" * width for width in widths])
    cells = ([one.ljust(width) for one, width in zip(row, widths)] for row in every)
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)


def section(run):
    """What is said about one backend."""
    counters = run["counters"]
    wrong = [f"**Failed:** {one}." for one in run["problems"]]
    return "\n\n".join([
        f"## {'io_uring' if run['backend'] == 'uring' else run['backend']}",
        f"{run['attack_s']:.0f} s of attack, {run['quiet_s']:.0f} s without before it. "
        f"Under attack the server took {run['cpu_s'] / run['attack_s']:.2f} of its "
        f"{run['server_cpus']} CPUs. It counted "
        f"{counters.get('connections_accepted', 0):,} connections and "
        f"{counters.get('requests', 0):,} requests in all. The worst honest request was due "
        f"{run['attacked']['worst_at']:.1f} s after the attack began. "
        f"\"After\" is {run['after_s']:.1f} s after the attack.",
        *wrong,
        table(TIMES_HEAD, times(run)),
        table(USES_HEAD, uses(run)),
        table(ATTACKS_HEAD, attacks_said(run)),
    ])


ABOUT = f"""\
Eleven kinds of attackers at the same time, each bounded in number or rate, beside an honest client
that asks at a steady rate and checks every byte. The server has CPUs of its own, shared only
with an idle echo. The attackers and the honest client have the others.

The honest client's latencies count from when each request was due, unless the client itself woke up
late: that delay is the last line. The echo's latency is what the machine adds.

The folder holds small files, one of {len(served.MIDDLE):,} bytes and one of
{served.LARGE_BYTES >> 20} MiB. The configuration file has fixed answers, a redirect and a second
folder. `--max-memory 64m`; other settings have their defaults. Memory is what is resident, and may
grow by what the server was given."""


def page(runs, machine):
    """docs/results/hostile.md."""
    about = (f"`make hostile`, {machine['date']}, commit {machine['commit']}, "
             f"Linux {machine['kernel']}, {machine['cpus']}, {machine['memory_mb']} MB.")
    return "\n\n".join(["# Under attack", about, ABOUT, *map(section, runs)]) + "\n"
