"""Bytes that attackers send: noise, broken requests, and odd ones that are right."""

TOKENS = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"%", b"%2e%2e%2f", b"%00", b"\\", b"/../",
    b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"//",
    b"Content-Length: 99999999999999999999\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked, gzip\r\n", b"Host: b\r\n",
    b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Upgrade: h2c\r\n", b" folded\r\n",
    b"Range: bytes=0-,-0,5-2\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00",
    b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", b"HTTP/0.9", b"HTTP/1.0", b"HTTP/2.0", b"CONNECT ",
    b"5\r\nhello\r\n0\r\n\r\n", b"fffffffffffffffff\r\n", b"5;x\r\n", b"\xff\xfe", "é".encode(),
]
METHODS = ["GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE", "TRACE", "CONNECT", "get", "M" * 70]
PATHS = [
    "/", "/small.txt", "/more/page.html", "/form", "/old/x?y=z", "/private/secret.txt",
    "//private/secret.txt", "/./private/./secret.txt", "/%70rivate/secret.txt", "/a/../b", "*",
    "http://localhost/small.txt", "/none", "/large.bin", "/" + "a/" * 300, "/" + "%61" * 500,
    "/?" + "q" * 3000,
]
FIELDS = [
    "Accept: */*", "Range: bytes=0-9", "Range: bytes=5-,-5", "If-None-Match: *", "If-Match: \"x\"",
    "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", "Cookie: " + "c" * 900,
    "Expect: 100-continue", "Connection: keep-alive", "Connection: close",
    "X-Forwarded-For: 1.2.3.4", "Accept-Encoding: gzip",
]


def good(random):
    """A request by the grammar, with a body that is what it says."""
    method = random.choice(METHODS[:6])
    fields = random.sample(FIELDS[:7], random.randrange(4))
    body, framing = b"", []
    if method in ("POST", "PUT"):
        body = b"b" * random.randrange(3_000)
        if random.random() < 0.5:
            framing = [f"Content-Length: {len(body)}"]
        else:
            framing = ["Transfer-Encoding: chunked"]
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    head = [f"{method} {random.choice(PATHS[:5])} HTTP/1.1", "Host: localhost", *fields, *framing]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def odd(random):
    """A request whose parts are each known to somebody, and together to nobody."""
    head = [f"{random.choice(METHODS)} {random.choice(PATHS)} HTTP/1.{random.choice('0112')}"]
    if random.random() < 0.9:
        head.append("Host: localhost")
    head += random.choices(FIELDS, k=random.choice((0, 1, 3, 120)))
    return "\r\n".join(head).encode() + b"\r\n\r\n"


def broken(random):
    """A request or three, cut, joined and with tokens put in where none belong."""
    data = bytearray()
    for _ in range(random.randint(1, 3)):
        data += random.choice((good, odd))(random)
    for _ in range(random.randint(1, 6)):
        at = random.randrange(len(data) + 1)
        kind = random.randrange(4)
        if kind == 0:
            data[at:at] = random.choice(TOKENS)
        elif kind == 1:
            del data[at:at + random.randint(1, 20)]
        elif kind == 2 and at < len(data):
            data[at] = random.randrange(256)
        else:
            data[at:at] = data[max(0, at - 40):at] * random.randint(1, 4)
    return bytes(data)


def bytes_of(random):
    """What one connection sends."""
    kind = random.random()
    if kind < 0.2:
        return random.randbytes(random.choice((1, 50, 5_000, 40_000)))
    if kind < 0.5:
        return odd(random)
    return broken(random)
