"""Cases that fare otherwise than the client, or the RFC, has it; each with the reason.

What is listed must differ, and what is not listed must not: either fails the suite. A pattern that
begins with `?` is for some of the cases that it matches, and for one at least.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import tlsfuzzer_differs


@dataclass
class Known:
    client: str
    pattern: str
    reason: str
    records: str = "both"
    # The layers of records for which a case has matched, and differed.
    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.is_some = self.pattern.startswith("?")
        parts = self.pattern.removeprefix("?").split("*")
        self.expression = re.compile(".*".join(map(re.escape, parts)), re.DOTALL)

    def matches(self, client: str, records: str, name: str) -> bool:
        return (self.client == client and self.records in ("both", records)
                and self.expression.fullmatch(name) is not None)


_FALLBACK = ("feature that is not there: TLS_FALLBACK_SCSV (RFC 7507); TLS 1.3 marks the random of "
             "a downgrade instead, and every client of it looks there")

KNOWN = [
    Known("openssl", "TLS 1.1 is refused with protocol_version", tlsfuzzer_differs.OLD_HELLO),
    Known("openssl", "TLS 1.0 is refused with protocol_version", tlsfuzzer_differs.OLD_HELLO),
    Known("NSS", "a fallback to TLS 1.2 is refused", _FALLBACK),
    Known("hellos by hand", "a fallback to TLS 1.2 is refused", _FALLBACK),
    Known("testssl.sh", "HSTS", "it is sent only where --hsts asks for it"),
    Known("testssl.sh", "cert_revocation", "the certificates of this suite name no list of revoked "
          "ones, and no responder"),
    *(Known("tlsfuzzer", f"{script}: {pattern}" if pattern[0] != "?" else
            f"?{script}: {pattern[1:]}", reason, records)
      for reason, records, scripts in tlsfuzzer_differs.KNOWN
      for script, patterns in scripts.items() for pattern in patterns),
]


def of(client: str, records: str, name: str) -> Known | None:
    """The difference that is known of a case."""
    found = (known for known in KNOWN if known.matches(client, records, name))
    return next(found, None)


def gone(client: str, records: str) -> Iterator[Known]:
    """Those for some cases that none of the cases has shown."""
    for known in KNOWN:
        if known.client == client and known.records in ("both", records) and known.is_some \
                and records not in known.seen:
            yield known
