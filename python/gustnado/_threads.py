"""Describes processes and threads in a sentence, and warns of odd combinations."""

from __future__ import annotations

import os

from ._options import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._plan import Plan


# What each process takes at least for connections, bodies and caches.
MEMORY_MIN = 16 << 20


def cpus() -> int:
    """Returns the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def memory() -> int:
    """Returns the private resident memory of the process in bytes."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def sentence(plan: Plan, interface: str) -> str:
    """For example: 2 processes x (1 engine thread + 8 threads for WSGI) on 2 CPUs."""
    if interface == "wsgi" and plan.threads > 1:
        inside = f"1 engine thread + {plan.threads} threads for WSGI"
    elif interface == "wsgi":
        inside = "1 thread for engine and WSGI"
    elif interface == "asgi":
        inside = "1 thread for engine, loop and application"
    else:
        inside = "1 thread for engine and handlers"
    return f"{_count(plan.workers, 'process', 'es')} x ({inside}) on {_count(cpus(), 'CPU', 's')}"


def warnings(plan: Plan, interface: str) -> Iterator[str]:
    """Returns warnings about unlikely settings, each with a remedy."""
    here = cpus()
    if plan.workers > here and interface != "wsgi":
        yield (
            f"{plan.workers} processes on {_count(here, 'CPU', 's')}: those beyond "
            f"{here} take memory and bring nothing; --workers {here} is enough"
        )
    if interface == "wsgi" and plan.workers > 2 * here + 1:
        yield (
            f"{plan.workers} processes on {_count(here, 'CPU', 's')}: for views that wait, threads "
            f"take less memory; for example --workers {here} --threads 8"
        )
    if interface == "wsgi" and plan.threads == 1:
        yield (
            "one slow view stops all connections of its process, for the engine's thread calls "
            "views; where they wait for something, say --threads 8"
        )
    if interface == "wsgi" and plan.threads > 64 * here:
        yield (
            f"{plan.threads} threads share one interpreter's lock; with so much concurrency, "
            "use more processes"
        )
    memory = _size_of(plan.settings.get("max-memory", "auto"))
    if memory and memory // plan.workers < MEMORY_MIN:
        yield (
            f"--max-memory {plan.settings['max-memory']} is less than 16m for each of "
            f"{_count(plan.workers, 'process', 'es')}; each takes 16m"
        )
    if interface != "wsgi" and plan.threads > 1:
        yield f"--threads {plan.threads} changes nothing: only WSGI applications run on threads"


def _size_of(text: str) -> int | None:
    """Returns the bytes of a size, or none: the engine refuses what is not one."""
    try:
        return size(text)
    except ValueError:
        return None


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one}{many if number != 1 else ''}"
