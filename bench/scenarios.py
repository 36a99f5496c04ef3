"""What is measured under load, and the figures to reach.

The counted scenarios are in counts.py; the held connections and the start in holding.py.
"""

from contenders import FIVE, GUSTNADO_EPOLL, GUSTNADO_URING, Work, scheduled
from load import Ab, Wrk
from measure import Limit, Scenario

OURS = [GUSTNADO_EPOLL, GUSTNADO_URING]
OTHER_SCHEDULERS = [
    scheduled("epoll", "pool-shared"),
    scheduled("epoll", "queue"),
    scheduled("epoll", "queue-shared"),
]
FROM_MEMORY = (
    "nginx responds from its configuration (`return 200`), its fastest way; Gustnado serves a file."
)


def to_null(reach: float) -> list[Limit]:
    """Both backends, each against the null server of the same backend."""
    return [Limit(ours.name, ours.null, reach) for ours in OURS]


def to_nginx(reach: float) -> list[Limit]:
    return [Limit(ours.name, "nginx", reach) for ours in OURS]


SCENARIOS = [
    Scenario(
        "s1",
        "13-byte response, keep-alive, 64 connections",
        Work(13),
        Wrk(64),
        FIVE + OTHER_SCHEDULERS,
        to_null(1.05),
        FROM_MEMORY,
    ),
    Scenario(
        "s6",
        "13-byte response, pipelined x16, 64 connections",
        Work(13),
        Wrk(64, "pipeline.lua"),
        FIVE,
        to_null(1.25),
        FROM_MEMORY,
    ),
    Scenario(
        "s2",
        "4 KB file, keep-alive, 1,000 connections",
        Work(4096),
        Wrk(1000),
        FIVE,
        to_nginx(0.60),
    ),
    Scenario(
        "s3",
        "108-byte file, keep-alive, 10,000 connections",
        Work(108),
        Ab(300_000, 10_000, keep_alive=True),
        FIVE,
        to_nginx(0.70),
    ),
    Scenario(
        "s4",
        "19-byte response, new connection per request, 1,000 at a time",
        Work(19, close=True),
        Ab(20_000, 1000, keep_alive=False),
        FIVE,
        to_nginx(0.92),
        FROM_MEMORY,
    ),
    Scenario(
        "s4b",
        "19-byte response, new connection per request, 30 at a time",
        Work(19, close=True),
        Ab(20_000, 30, keep_alive=False),
        FIVE,
        to_nginx(0.80),
        FROM_MEMORY,
    ),
    Scenario(
        "s5b",
        "64 KB file, keep-alive, 64 connections",
        Work(65_536),
        Wrk(64),
        FIVE,
        to_nginx(0.72),
    ),
    Scenario(
        "s5a",
        "1 MB file, keep-alive, 16 connections",
        Work(1 << 20),
        Wrk(16),
        FIVE,
        to_nginx(0.95),
    ),
]
