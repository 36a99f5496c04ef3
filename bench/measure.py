"""One measurement: contenders side by side in interleaved rounds, and what came out of it.

The figure is the server's CPU time per request. Throughput and latency are shown too, but on two
CPUs the generator is often what limits them.
"""

import contextlib
import statistics
import time
from dataclasses import dataclass, field

import machine
from contenders import Contender, Server, Work
from load import Ab, Wrk
from machine import BenchError, say


@dataclass(frozen=True)
class Limit:
    """A figure to reach: `who`'s over `against`'s, or `who`'s own where `against` is empty."""

    who: str
    against: str
    reach: float


@dataclass(frozen=True)
class Scenario:
    """Load on several servers. `limits` are on CPU time per request."""

    key: str
    title: str
    work: Work
    drive: Wrk | Ab
    contenders: list[Contender]
    limits: list[Limit] = field(default_factory=list)
    note: str = ""


@dataclass
class Sample:
    """One contender in one round. The last two are in % of one CPU over the run."""

    cpu_us: float
    per_second: float
    p50_us: float | None
    p99_us: float | None
    requests: int
    failed: int
    stolen: float
    other: float


def side_by_side(scenario: Scenario, rounds: int, seconds: float) -> dict:
    """Runs A B C, A B C, … and returns what the report needs, ready for JSON."""
    say(f"{scenario.key}: {scenario.title}")
    samples: dict[str, list[Sample]] = {}
    missing: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        servers = start_all(stack, scenario, missing)
        for turn in range(rounds):
            for server in servers:
                name = server.contender.name
                if name in missing:
                    continue
                try:
                    sample = run_once(server, scenario, seconds)
                except (BenchError, OSError) as error:
                    missing[name] = str(error)
                    say(f"  {name}: {error}")
                    continue
                samples.setdefault(name, []).append(sample)
                say(f"  round {turn + 1} {name}: {sample.cpu_us:.2f} us, "
                    f"{sample.per_second:.0f}/s, failed {sample.failed}")
    rows = [summary(contender, samples) for contender in scenario.contenders
            if samples.get(contender.name)]
    compare(rows, samples)
    every = [sample for taken in samples.values() for sample in taken]
    return {
        "kind": "load",
        "title": scenario.title,
        "how": f"{scenario.drive.describe()}, {rounds} rounds",
        "note": scenario.note,
        "rows": rows,
        "missing": missing,
        "noise": noise(every),
        "verdicts": [verdict(limit, samples) for limit in scenario.limits],
        "samples": {name: [vars(sample) for sample in taken] for name, taken in samples.items()},
    }


def start_all(stack: contextlib.ExitStack, scenario: Scenario, missing: dict) -> list[Server]:
    """Starts the contenders; one that does not start, or answers otherwise, is left out by name."""
    servers = []
    for contender in scenario.contenders:
        try:
            server = stack.enter_context(Server(contender, scenario.work))
            server.await_ready()
            fell_back = contender.kind == "gustnado" and contender.io == "uring"
            if fell_back and not server.uses_uring() and "shared" not in contender.scheduler:
                raise BenchError("holds no ring: it fell back to epoll")
            servers.append(server)
        except (BenchError, OSError) as error:
            missing[contender.name] = str(error)
            say(f"  {contender.name}: {error}")
    return servers


def run_once(server: Server, scenario: Scenario, seconds: float) -> Sample:
    stolen, busy = machine.stolen_and_busy()
    generator, own = machine.children_seconds(), server.cpu_seconds()
    began = time.monotonic()
    load = scenario.drive.run(server.port, scenario.work, seconds)
    took = time.monotonic() - began
    own = server.cpu_seconds() - own
    generator = machine.children_seconds() - generator
    stolen_after, busy_after = machine.stolen_and_busy()
    if not load.requests:
        raise BenchError("no request was answered")
    return Sample(
        cpu_us=own / load.requests * 1e6,
        per_second=load.per_second,
        p50_us=load.p50_us,
        p99_us=load.p99_us,
        requests=load.requests,
        failed=load.failed,
        stolen=100 * (stolen_after - stolen) / took,
        other=max(0.0, 100 * (busy_after - busy - own - generator) / took),
    )


def summary(contender: Contender, samples: dict[str, list[Sample]]) -> dict:
    """One line of the table: medians, and how far the rounds lie apart."""
    taken = samples[contender.name]
    cpu = [sample.cpu_us for sample in taken]
    return {
        "name": contender.name,
        "null": contender.null,
        "cpu_us": statistics.median(cpu),
        "cpu_us_min": min(cpu),
        "cpu_us_max": max(cpu),
        "per_second": statistics.median(sample.per_second for sample in taken),
        "p50_us": median_or_none([sample.p50_us for sample in taken]),
        "p99_us": median_or_none([sample.p99_us for sample in taken]),
        "requests": sum(sample.requests for sample in taken),
        "failed": sum(sample.failed for sample in taken),
    }


def median_or_none(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def compare(rows: list[dict], samples: dict[str, list[Sample]]) -> None:
    """Adds the two ratios to every line: to the null server of the same backend, and to nginx."""
    for row in rows:
        row["to_null"] = ratio(samples, row["name"], row["null"])[0]
        row["to_nginx"] = ratio(samples, row["name"], "nginx")[0]


def ratio(
    samples: dict[str, list[Sample]], who: str, against: str
) -> tuple[float | None, float | None, float | None]:
    """Ratio of the medians, then the smallest and the largest ratio within one round.

    The rounds are interleaved, so a slow minute of the machine hits both sides of a round's ratio.
    """
    ours, theirs = samples.get(who), samples.get(against)
    if not ours or not theirs:
        return None, None, None
    found = statistics.median(s.cpu_us for s in ours) / statistics.median(s.cpu_us for s in theirs)
    each = [one.cpu_us / other.cpu_us for one, other in zip(ours, theirs)]
    return found, min(each), max(each)


def verdict(limit: Limit, samples: dict[str, list[Sample]]) -> dict:
    found, low, high = ratio(samples, limit.who, limit.against)
    failed = sum(sample.failed for sample in samples.get(limit.who, []))
    return {
        "measure": f"{limit.who}: server CPU per request / {limit.against}'s",
        "reach": f"<= {limit.reach:.2f}",
        "found": "not measured" if found is None else f"{found:.2f} ({low:.2f}-{high:.2f})",
        "met": found is not None and found <= limit.reach and failed == 0,
        "failed": failed,
    }


def noise(samples: list[Sample]) -> dict:
    """What else the machine did, in % of one CPU: median and worst run."""
    if not samples:
        return {}
    stolen, other = [s.stolen for s in samples], [s.other for s in samples]
    return {
        "stolen_median": statistics.median(stolen),
        "stolen_worst": max(stolen),
        "other_median": statistics.median(other),
        "other_worst": max(other),
    }
