"""Folders with settings of their own, in Python: by HTTP/1.1 and by HTTP/2."""

import gzip
import http.client
import io
import json
import socket
import time
import urllib.parse
import zipfile

import gustnado
import pytest
from http2_link import Link

SITE = """
import gustnado

app = gustnado.App()
app.files("/app", "./dist", spa="index.html", compress="on")
app.files("/pub", "./pub", listing="on", archives="zip", index=["start.html"], hidden=None)
app.files("/up", "./up", upload=True, upload_bytes_max="1k")
app.files("/plain", "./pub")
"""
NAVIGATION = "Accept: text/html\r\n"


@pytest.fixture
def site(run, tmp_path):
    for name, text in [("dist/index.html", "<title>app</title>"), ("dist/long.txt", "text " * 999),
                       ("pub/one.txt", "one"), ("pub/more/start.html", "start"),
                       ("up/.keep", "")]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return run(SITE, "--h2c")


def test_each_folder_has_its_own(site, tmp_path):
    page = site.get("/app/users/7", NAVIGATION)
    assert (page.status, page.body) == (200, b"<title>app</title>")
    text = site.get("/app/long.txt", "Accept-Encoding: gzip\r\n")
    assert text.fields["content-encoding"] == "gzip"
    assert gzip.decompress(text.body) == b"text " * 999
    assert site.get("/plain/users/7", NAVIGATION).status == 404
    assert site.get("/plain/").status == 404
    names = json.loads(site.get("/pub/?format=json").body)
    assert "one.txt" in json.dumps(names)
    assert site.get("/pub/more/").body == b"start"
    put = site.get("/up/new.txt", "Content-Length: 0\r\n", "PUT")
    assert put.status == 201 and (tmp_path / "up" / "new.txt").exists()
    assert site.get("/plain/new.txt", "Content-Length: 0\r\n", "PUT").status == 405
    long = site.get("/up/long.txt", "Content-Length: 2000\r\n", "PUT")
    assert long.status == 413
    site.wait_for_words(
        "/up/long.txt: refused with 413: 2000 bytes of its body; the limit of its route is 1024")


def test_an_archive_is_the_same_by_both_protocols(site):
    with Link(site.port) as link:
        answers = [site.get("/pub/?archive=zip").body, link.get("/pub/?archive=zip").body]
        assert link.get("/plain/?archive=zip").status == 404
        listing = link.get("/pub/", [("accept", "application/json")])
        assert listing.status == 200 and b"one.txt" in listing.body
    for body in answers:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            files = {name.rpartition("pub/")[2] for name in archive.namelist()}
            assert {"one.txt", "more/start.html"} <= files
            assert archive.testzip() is None


@pytest.mark.parametrize("settings, said", [
    ({"listig": "on"}, 'did you mean "listing"?'),
    ({"workers": 2}, "is the server's alone"),
    ({"nothing_like_it": 2}, "is no setting"),
])
def test_what_a_folder_cannot_have_is_said_at_once(settings, said):
    with pytest.raises(ValueError) as found:
        gustnado.App().files("/", ".", **settings)
    assert said in str(found.value)


def test_a_value_that_is_none_is_said_at_the_start(tmp_path):
    app = gustnado.App().files("/pub", tmp_path, listing="maybe")
    with pytest.raises(ValueError) as found:
        with gustnado.Server(app, port=0):
            pass
    assert "/pub" in str(found.value) and "maybe" in str(found.value)


@pytest.mark.parametrize("name", ["allow", "basic_auth", "signed_urls", "forbidden"])
@pytest.mark.parametrize("unset", ["", [""]])
def test_an_empty_value_does_not_open_a_folder(tmp_path, name, unset):
    app = gustnado.App().files("/pub", tmp_path, **{name: unset})
    with pytest.raises(ValueError) as found:
        with gustnado.Server(app, port=0):
            pass
    assert "or off for none" in str(found.value)
    with pytest.raises(ValueError, match="or off for none"):
        with gustnado.Server(gustnado.App(), port=0, **{name: unset}):
            pass


def test_none_is_an_empty_list_or_off(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    app = gustnado.App().files("/all", tmp_path, allow=[], basic_auth="off")
    app.files("/some", tmp_path)
    with gustnado.Server(app, port=0, allow=["192.0.2.1"]) as server:
        (url,) = server.urls
        statuses = []
        for place in ("all", "some"):
            link = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=5)
            link.request("GET", f"/{place}/a.txt")
            statuses.append(link.getresponse().status)
            link.close()
    assert statuses == [200, 403]
    with gustnado.Server(app, port=0, allow=[], basic_auth="off"):
        pass


def test_durations_may_be_parts_of_seconds(tmp_path):
    app = gustnado.App().files("/pub", tmp_path, idle_timeout=1.5)
    with gustnado.Server(app, port=0, header_timeout=0.5, timeout_keep_alive=2.5) as server:
        host, _, port = urllib.parse.urlsplit(server.urls[0]).netloc.partition(":")
        with socket.create_connection((host, int(port)), timeout=5) as link:
            link.sendall(b"GET / HTTP/1.1\r\n")
            began = time.monotonic()
            assert link.recv(99).startswith(b"HTTP/1.1 408 ")
            assert 0.3 < time.monotonic() - began < 5
