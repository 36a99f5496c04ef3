"""Cases that fare otherwise than the client, or the RFC, has it; each with the reason.

What is listed must differ, and what is not listed must not: either fails the suite.
"""

from fnmatch import fnmatchcase

# The client, a pattern of the case's name, the reason.
_KNOWN = [
    ("openssl", "TLS 1.? is refused with protocol_version",
     "the alert is handshake_failure: these hellos have no signature_algorithms, which rustls "
     "looks for before it looks at the version"),
    ("curl", "--http1.0",
     "curl offers http/1.0 alone by ALPN then, which the server does not take; it would take the "
     "request"),
    ("Python ssl", "TLS 1.?: close_notify with the request, and no end of TCP",
     "a defect: the response comes whole, but close_notify that was received together with the "
     "request is noticed no more, and the connection stays open until its time is over"),
    ("NSS", "a fallback to TLS 1.2 is refused",
     "TLS_FALLBACK_SCSV (RFC 7507) is not looked at; TLS 1.3 marks the random of a downgrade "
     "instead, which every client of it checks"),
]


def of(client: str, name: str) -> str:
    """The reason why a case differs, or nothing."""
    found = (reason for whose, pattern, reason in _KNOWN
             if whose == client and fnmatchcase(name, pattern))
    return next(found, "")
