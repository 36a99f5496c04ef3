"""Requests of the kinds that servers have been found to differ in, as raw bytes."""

import itertools
import random

HOST = b"Host: a\r\n"


def get(path, fields=b"", method=b"GET", version=b"HTTP/1.1"):
    return method + b" " + path + b" " + version + b"\r\n" + HOST + fields + b"\r\n"


def post(path, body, fields=b"", method=b"POST"):
    return get(path, b"Content-Length: %d\r\n" % len(body) + fields, method) + body


FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"
PARTS = b"Content-Type: multipart/form-data; boundary=XX\r\n"
MULTIPART = (b'--XX\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
             b'--XX\r\nContent-Disposition: form-data; name="f"; filename="n.txt"\r\n'
             b"Content-Type: text/plain\r\n\r\nlines\r\nof it\r\n--XX--\r\n")
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def kinds(page, later=None, takes_posts=True):
    """Requests of every kind for a page that responds at once.

    - `later`: one that does not.
    - `takes_posts`: whether the page serves POST, too.
    """
    line = b"GET " + page + b" HTTP/1.1\r\n"
    made = {
        "plain": get(page),
        "without a host": line + b"\r\n",
        "keep-alive": get(page) * 2,
        "keep-alive, asked for": get(page, b"Connection: keep-alive\r\n") * 2,
        "close": get(page, b"Connection: close\r\n"),
        "close, among others": get(page, b"Connection: x, close\r\n"),
        "close, and more behind it": get(page, b"Connection: close\r\n") + get(page),
        "head": get(page, method=b"HEAD") + get(page),
        "absent": get(b"/not/there"),
        "method not allowed": get(page, b"Content-Length: 0\r\n", b"DELETE"),
        "unknown method": get(page, method=b"BREW"),
        "lower-case method": get(page, method=b"get"),
        "odd method": get(page, method=b"G(T"),
        "HTTP/1.0": get(page, version=b"HTTP/1.0"),
        "HTTP/1.0, kept": get(page, b"Connection: keep-alive\r\n", version=b"HTTP/1.0") * 2,
        "HTTP/1.0, Kept": get(page, b"Connection: Keep-Alive\r\n", version=b"HTTP/1.0") * 2,
        "HTTP/2.0": get(page, version=b"HTTP/2.0"),
        "HTTP/1.2": get(page, version=b"HTTP/1.2"),
        "http/1.1": get(page, version=b"http/1.1"),
        "no version": b"GET " + page + b"\r\n\r\n",
        "two blanks in the line": b"GET  " + page + b" HTTP/1.1\r\n\r\n",
        "blank behind the line": b"GET " + page + b" HTTP/1.1 \r\n\r\n",
        "bad line": b"nonsense\r\n\r\n",
        "bad field": line + b"no colon\r\n\r\n",
        "space before the colon": line + b"X-Odd : 1\r\n\r\n",
        "no name": line + b": 1\r\n\r\n",
        "empty value": get(page, b"X-Odd:\r\nX-Even: \t \r\n"),
        "NUL in a value": get(page, b"X-Odd: a\x00b\r\n"),
        "NUL in the target": get(page + b"\x00"),
        "control byte in a value": get(page, b"X-Odd: a\x01\x7fb\r\n"),
        "CR in a value": get(page, b"X-Odd: a\rb\r\n"),
        "folded": get(page, b"X-Odd: a\r\n b\r\n\tc\r\n"),
        "folded at first": line + b" folded\r\n\r\n",
        "499 fields": line + b"X-Odd: 1\r\n" * 499 + b"\r\n",
        "500 fields": line + b"X-Odd: 1\r\n" * 500 + b"\r\n",
        "501 fields": line + b"X-Odd: 1\r\n" * 501 + b"\r\n",
        "LF only": b"GET " + page + b" HTTP/1.1\nHost: a\n\n",
        "LF within": line + b"Host: a\nX: b\r\n\r\n",
        "leading CRLF": b"\r\n" + get(page),
        "leading CRLFs": b"\r\n\r\n\r\n" + get(page),
        "CRLF between": get(page) + b"\r\n" + get(page),
        "query": get(page + b"?a=1&b=%20c&a=2&d&e=&=f;g=h+i"),
        "fragment": get(page + b"#part"),
        "cookies": get(page, b"Cookie: a=1; b=\"two\"; c\r\nCookie: a=3\r\n"),
        "repeated fields": get(page, b"X-Odd: 1\r\nx-odd:  2 \t\r\nX-ODD: 3\r\n"),
        "odd spellings": get(page, b"eTaG: 1\r\nwww-authenticate: 2\r\ndnt: 3\r\nx-xss-protection:"
                                   b" 4\r\nTE: trailers\r\nx_odd: 5\r\n"),
        "obs-text": get(page, b"X-Odd: \xe9\xff\r\nCookie: \xe9=\xfc\r\n"),
        "bytes beyond the target's": get(page + b"?\xe9"),
        "bytes far beyond": get(page + b"?\xff"),
        "absolute": get(b"http://a.example" + page),
        "absolute of another kind": get(b"https://a.example:1" + page + b"?x"),
        "OPTIONS *": get(b"*", method=b"OPTIONS"),
        "CONNECT": get(b"a.example:443", method=b"CONNECT"),
        "TRACE": get(page, method=b"TRACE"),
        "range": get(page, b"Range: bytes=1-4\r\n"),
        "upgrade": get(page, b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version:"
                             b" 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"),
        "upgrade to HTTP/2": get(page, b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                                       b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n"),
        "preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "TLS": b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(32) + b"\r\n\r\n",
        "pipelined": get(page) * 3,
        "pipelined, the last one bad": get(page) * 2 + b"nonsense\r\n\r\n",
        "pipelined, the last one cut": get(page) * 2 + get(page)[:-3],
        "only the line": line,
        "only a part of the line": line[:5],
        "length without a body": get(page, b"Content-Length: 5\r\n"),
        "length of GET": get(page, b"Content-Length: 5\r\n") + b"abcde" + get(page),
    }
    for size in (16_381, 16_382, 16_383, 16_384, 16_385, 16_386, 16_400, 40_000):
        head = line + b"X-Odd: "
        made[f"head of {size}"] = head + b"x" * (size - len(head) - 4) + b"\r\n\r\n"
        made[f"head of {size}, of lines"] = _head_of_lines(line, size)
        made[f"line of {size}"] = get(page + b"?" + b"x" * size)
    if takes_posts:
        made.update(bodies(page))
    if later:
        made.update(pauses(page, later))
    return made


def _head_of_lines(line, size):
    lines = [line]
    while sum(map(len, lines)) < size - 120:
        lines.append(b"X-Odd: " + b"x" * 91 + b"\r\n")
    left = size - sum(map(len, lines)) - 4
    return b"".join(lines) + b"X-Odd: ".ljust(left, b"y") + b"\r\n\r\n"


def bodies(page):
    once = b"POST " + page + b" HTTP/1.1\r\n" + HOST
    chunks = b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n"
    length = b"Content-Length: 3\r\n"
    return {
        "post": post(page, b"abc"),
        "empty post": post(page, b""),
        "post without a length": get(page, method=b"POST"),
        "post, kept": post(page, b"abc") + get(page),
        "post of 300,000": post(page, bytes(range(256)) * 1172),
        "put": post(page, b"abc", method=b"PUT"),
        "form": post(page + b"?x=1", b"a=1&b=%C3%A9&a=2&c", FORM),
        "form with a character set": post(page, b"a=1", FORM[:-2] + b"; charset=utf-8\r\n"),
        "form that is no form": post(page, b"\xff%zz=&&;", FORM),
        "multipart": post(page, MULTIPART, PARTS),
        "multipart, then more": post(page, MULTIPART, PARTS) + get(page),
        "multipart without a boundary": post(page, b"abc", PARTS.split(b";")[0] + b"\r\n"),
        "multipart that is broken": post(page, b"abc", PARTS) + get(page),
        "multipart that is cut": post(page, MULTIPART[:90], PARTS) + get(page),
        "chunked": once + CHUNKED + b"\r\n" + chunks + get(page),
        "chunked, with trailers": once + CHUNKED + b"\r\n" + chunks[:-2] + b"X: y\r\n\r\n",
        "chunked, badly": once + CHUNKED + b"\r\nzz\r\nabc\r\n0\r\n\r\n",
        "chunked, and a form": once + FORM + CHUNKED + b"\r\n7\r\na=1&b=2\r\n0\r\n\r\n",
        "Chunked": once + b"transfer-encoding: Chunked\r\n\r\n" + chunks,
        "coded otherwise": once + b"Transfer-Encoding: gzip\r\n\r\nabc",
        "coded twice": once + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunks,
        "identity": once + b"Transfer-Encoding: identity\r\n" + length + b"\r\nabc",
        "length and chunked": once + length + CHUNKED + b"\r\n" + chunks,
        "chunked and length": once + CHUNKED + length + b"\r\n" + chunks,
        "two lengths": once + length + length + b"\r\nabc",
        "two lengths that differ": once + length + b"Content-Length: 4\r\n\r\nabcd",
        "list of lengths": once + b"Content-Length: 3, 3\r\n\r\nabc",
        "length that is negative": once + b"Content-Length: -3\r\n\r\nabc",
        "length with a sign": once + b"Content-Length: +3\r\n\r\nabc",
        "length with a line under it": once + b"Content-Length: 0_3\r\n\r\nabc",
        "length with a nought": once + b"Content-Length: 003\r\n\r\nabc" + get(page),
        "length that is no number": once + b"Content-Length: three\r\n\r\nabc",
        "length that is empty": once + b"Content-Length:\r\n\r\n",
        "length of twenty digits": once + b"Content-Length: 99999999999999999999\r\n\r\nabc",
        "expect": post(page, b"abc", b"Expect: 100-continue\r\n"),
        "expect, with nothing": get(page, b"Expect: 100-continue\r\n"),
        "expect otherwise": post(page, b"abc", b"Expect: cake\r\n"),
        "expect in HTTP/1.0": post(page, b"abc", b"Expect: 100-continue\r\n").replace(
            b"HTTP/1.1", b"HTTP/1.0"),
        "post in HTTP/1.0": post(page, b"abc").replace(b"HTTP/1.1", b"HTTP/1.0"),
    }


def pauses(page, later):
    """What comes behind a request that has no response at once."""
    return {
        "later": get(later),
        "later, in HTTP/1.0": get(later, version=b"HTTP/1.0"),
        "later, head": get(later, method=b"HEAD") + get(page),
        "pipelined behind a later one": get(later) + get(page) * 2,
        "later ones": get(later) * 3,
        "a bad one behind a later one": get(later) + b"nonsense\r\n\r\n",
        "a post behind a later one": get(later) + post(page, b"abc") + get(page),
        "a large post behind a later one": get(later) + post(page, b"abc" * 50_000) + get(page),
        "a cut one behind a later one": get(later) + get(page)[:-3],
        "later, and close": get(later, b"Connection: close\r\n") + get(page),
    }


def pieces(request, name=""):
    """The ways to send it: whole, byte by byte where it is short, and cut at random places."""
    ways = {"whole": [request]}
    if len(request) <= 160:
        ways["byte by byte"] = [request[at:at + 1] for at in range(len(request))]
    for seed in (1, 2):
        chance = random.Random(f"{seed} {name}")
        count = min(len(request) - 1, chance.randint(1, 6))
        cuts = [0, *sorted(chance.sample(range(1, len(request)), count)), len(request)]
        ways[f"cut, {seed}"] = [request[a:b] for a, b in itertools.pairwise(cuts)]
    return ways


def cases_of(requests):
    return {f"{name} [{way}]": cut for name, request in requests.items()
            for way, cut in pieces(request, name).items()}
