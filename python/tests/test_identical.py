"""twisted.web's programs respond on this reactor as on Twisted's own, to the byte.

Both get the same requests, over raw sockets. Compared are the bytes, and whether the connection is
open afterwards. What is masked is listed in `pairs.py`.
"""

import pytest

pytest.importorskip("twisted")

from pairs import Compared, Pair
from requests_sent import FORM, cases_of, get, kinds, post

BASIC = b"Authorization: Basic am9lOmJsb3c=\r\n"
WRONG = b"Authorization: Basic am9lOm5v\r\n"
CALL = (b"<?xml version='1.0'?><methodCall><methodName>%s</methodName><params>%s</params>"
        b"</methodCall>")
NUMBER = b"<param><value><int>%d</int></value></param>"
GZIP = b"Accept-Encoding: gzip, deflate\r\n"
LONG_AGO, FAR_OFF = (b"If-Modified-Since: Mon, 01 Jan %d 00:00:00 GMT\r\n" % year
                     for year in (1990, 2035))

# One request or more for each kind of resource.
RESOURCES = {
    "dynamic children": get(b"/tree/a/b%20c/d/e") + get(b"/tree/") + get(b"/tree/a/b/c/d/e/f"),
    "child found later": get(b"/late/child") + get(b"/late/other", method=b"HEAD"),
    "whole, later": get(b"/whole-later") * 2,
    "exception": get(b"/fails") + get(b"/"),
    "exception, head": get(b"/fails", method=b"HEAD"),
    "exception behind what was written": get(b"/fails-within") + get(b"/"),
    "text in place of bytes": get(b"/wrong-kind"),
    "cookies set": get(b"/cookie") + get(b"/cookie", method=b"HEAD"),
    "etag": get(b"/cookie", b'If-None-Match: "x"\r\n') + get(b"/cookie", b'If-None-Match: y\r\n'),
    "etag, any": get(b"/cookie", b"If-None-Match: *\r\n"),
    "not modified": get(b"/cookie", FAR_OFF) + get(b"/cookie", LONG_AGO),
    "session": get(b"/session"),
    "redirect": get(b"/redirect") + get(b"/redirect", version=b"HTTP/1.0"),
    "redirect, posted": post(b"/redirect", b"a=1", FORM),
    "resources that redirect": get(b"/moved") + get(b"/up") + b"GET /up HTTP/1.1\r\n\r\n",
    "error page": get(b"/error") + get(b"/error", method=b"HEAD"),
    "forbidden": get(b"/forbidden") + get(b"/gone/x"),
    "data": get(b"/data") + get(b"/data", method=b"HEAD") + post(b"/data", b"abc"),
    "template": get(b"/template") + get(b"/"),
    "closes": get(b"/closes") + get(b"/"),
    "drops": get(b"/drops") + get(b"/"),
    "aborts": get(b"/aborts") + get(b"/"),
    "large": get(b"/large") + get(b"/"),
    "large, head": get(b"/large", method=b"HEAD") + get(b"/"),
    "push producer": get(b"/push") + get(b"/"),
    "push producer, HTTP/1.0": get(b"/push", version=b"HTTP/1.0"),
    "pull producer": get(b"/pull") + get(b"/"),
    "two producers": get(b"/pull") + get(b"/push") + get(b"/"),
    "session and query": get(b"/seen?a=1") + get(b"/session"),
    "basic authentication": get(b"/basic") + get(b"/basic", BASIC) + get(b"/basic", WRONG),
    "digest authentication": get(b"/digest") + get(b"/digest", b"Authorization: Digest x\r\n"),
    "user and password": get(b"/seen", BASIC),
    "WSGI": get(b"/wsgi/a%20b?c=d", b"X-Odd: 1\r\nX-Odd: 2\r\n") + get(b"/"),
    "WSGI, posted": post(b"/wsgi", b"a=1", FORM) + get(b"/"),
    "WSGI that fails": get(b"/wsgi-fails") + get(b"/"),
    "host": get(b"/hosts") + b"GET /hosts HTTP/1.1\r\nHost: b.example\r\n\r\n",
    "no host": b"GET /hosts HTTP/1.1\r\n\r\n",
    "other host": b"GET /hosts HTTP/1.1\r\nHost: c:80\r\n\r\n",
    "zipped": get(b"/zipped", GZIP) + get(b"/zipped"),
    "zipped, large": get(b"/zipped-large", GZIP),
    "zipped, later": get(b"/zipped-later", GZIP) + get(b"/"),
    "zipped, head": get(b"/zipped", GZIP, b"HEAD") + get(b"/"),
    "proxy": get(b"/proxy?a=1", b"X-Odd: 1\r\n"),
    "proxy, posted": post(b"/proxy", b"abc"),
    "XML-RPC": post(b"/procedures", CALL % (b"add", NUMBER % 1 + NUMBER % 2)) * 2,
    "XML-RPC, fault": post(b"/procedures", CALL % (b"fails", b"")) + get(b"/procedures"),
    "XML-RPC, no such": post(b"/procedures", CALL % (b"absent", b"")),
    "file": get(b"/files/text.txt") + get(b"/files/style.css"),
    "file without a type": get(b"/files/noext"),
    "file, head": get(b"/files/text.txt", method=b"HEAD") + get(b"/"),
    "file, posted": post(b"/files/text.txt", b"abc"),
    "file, range": get(b"/files/text.txt", b"Range: bytes=3-9\r\n") + get(b"/"),
    "file, range to the end": get(b"/files/text.txt", b"Range: bytes=440-\r\n"),
    "file, range of the end": get(b"/files/text.txt", b"Range: bytes=-5\r\n"),
    "file, range beyond": get(b"/files/text.txt", b"Range: bytes=5000-\r\n") + get(b"/"),
    "file, bad range": get(b"/files/text.txt", b"Range: lines=1-2\r\n"),
    "file, not modified": get(b"/files/text.txt", FAR_OFF) + get(b"/"),
    "file, modified": get(b"/files/text.txt", LONG_AGO) + get(b"/"),
    "file, bad time": get(b"/files/text.txt", b"If-Modified-Since: soon\r\n"),
    "folder": get(b"/files/folder/") + get(b"/files/folder/a%20name.txt"),
    "folder without a slash": get(b"/files/folder") + get(b"/files/folder?a=1"),
    "folder with an index": get(b"/files/sub/") + get(b"/files/sub"),
    "out of the folder": get(b"/files/../web.py") + get(b"/files/%2e%2e/web.py"),
    "file that is absent": get(b"/files/absent") + get(b"/files/text.txt/below"),
}
for code, words in ((204, b""), (304, b""), (200, b"&body=x"), (404, b"&words=odd%20one"),
                    (500, b"&body=x"), (299, b"&body=x"), (204, b"&body=x")):
    target = b"/status?code=%d%s" % (code, words)
    RESOURCES[f"status {code} {words.decode()}"] = get(target) + get(b"/")
    RESOURCES[f"status {code} {words.decode()}, HTTP/1.0"] = get(target, version=b"HTTP/1.0")

# Ranges of several parts have a boundary of the time and the process in them.
OTHER_SITES = ("traced", "logged", "requests", "channels")

# Where we are known to differ, and how. What is mended has to go from here: it fails then.
# (A channel of the program's own goes Twisted's way, so there they do not.)
KNOWN = {}


KINDS = cases_of(kinds(b"/seen", b"/later"))
OF_RESOURCES = cases_of(RESOURCES)
WHOLE = {name: cut for name, cut in {**KINDS, **OF_RESOURCES}.items() if len(cut) == 1}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pair = Pair(tmp_path_factory.mktemp("site"), "web.py", "quiet")
    yield Compared(pair, {**KINDS, **OF_RESOURCES})
    pair.kill()


@pytest.fixture(scope="module", params=OTHER_SITES)
def other_site(request, tmp_path_factory):
    pair = Pair(tmp_path_factory.mktemp("site"), "web.py", request.param)
    yield Compared(pair, WHOLE)
    pair.kill()


def expect_known(request, name):
    if name in KNOWN:
        request.applymarker(pytest.mark.xfail(reason=KNOWN[name], strict=True))


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_request(request, site, name):
    expect_known(request, name)
    site.check(name, KINDS[name])


@pytest.mark.parametrize("name", OF_RESOURCES)
def test_every_kind_of_resource(request, site, name):
    expect_known(request, name)
    site.check(name, OF_RESOURCES[name])


@pytest.mark.parametrize("name", WHOLE)
def test_on_other_sites(request, other_site, name):
    if "channels" not in other_site.pair.words:
        expect_known(request, name)
    other_site.check(name, WHOLE[name])
