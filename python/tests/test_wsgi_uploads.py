"""Bodies of requests to WSGI applications: in memory, in files, refused."""

import hashlib
import os
import time

import pytest
from conftest import post_chunked

PROGRAM = """
import hashlib, io, os, time

held = []

def app(environ, start_response):
    path, read = environ["PATH_INFO"], environ["wsgi.input"]
    start_response("200 OK", [("Content-Type", "text/plain")])
    if path == "/kind":
        return [type(read).__name__.encode()]
    if path == "/lines":
        first, second = read.readline(), read.readline(3)
        rest = read.readlines()
        return [b"%d %d %d" % (len(first), len(second), sum(map(len, rest)))]
    if path == "/seek":
        end, last = read.seek(-3, 2), read.read(10)
        start, first = read.seek(0), bytearray(4)
        read.readinto(first)
        rest = len(read.read())
        read.close()
        try:
            read.read()
        except ValueError:
            return [repr((end, last, start, bytes(first), rest)).encode()]
    if path == "/text":
        return [next(iter(io.TextIOWrapper(read, "utf-8"))).strip().encode()]
    if path == "/hold":
        held.append(read)
        return [b"held"]
    if path == "/drop":
        held.clear()
        return [b"dropped"]
    found, length = hashlib.sha256(), 0
    while piece := read.read(65536):
        found.update(piece)
        length += len(piece)
    return [f"{environ.get('CONTENT_LENGTH')} {length} {found.hexdigest()}".encode()]
"""

MIB = 1 << 20


@pytest.fixture(params=["inline", "threads"])
def options(request):
    return ["--threads", "4"] if request.param == "threads" else []


def test_bodies_of_any_length_come_whole(run, options):
    server = run(PROGRAM, *options)
    for length in (5, MIB - 1, MIB, MIB + 1, 5 * MIB):
        body = bytes(index * 7 % 251 for index in range(1000)) * (length // 1000 + 1)
        body = body[:length]
        wanted = f"{length} {length} {hashlib.sha256(body).hexdigest()}".encode()
        assert server.post("/", body).body == wanted, length
        assert wanted in post_chunked(server, "/", body), length


def test_long_ones_are_in_a_file_without_a_name(run, options):
    server = run(PROGRAM, *options)
    assert server.post("/kind", b"short").body == b"BytesIO"
    assert server.post("/kind", b"x" * (MIB + 1)).body == b"BufferedRandom"
    body = b"a line\n" * 200_000
    assert server.post("/lines", body).body == b"7 3 %d" % (len(body) - 10)
    assert [name for name in os.listdir(server.folder) if "tmp" in name] == []


def test_long_ones_in_memory_are_read_where_they_lie(run, options):
    server = run(PROGRAM, *options)
    for length in (64 << 10, 300_001, MIB):
        body = b"0123" + b"a line\n" * (length // 7) + b"xyz"
        body = body[:length - 3] + b"xyz"
        assert server.post("/kind", body).body == b"BufferedReader"
        found = server.post("/seek", body).body
        assert found == repr((length - 3, b"xyz", 0, b"0123", length - 4)).encode()
        assert server.post("/lines", body).body == b"11 3 %d" % (length - 14)
        assert server.post("/text", body).body == b"0123a line"


def test_a_limit_that_is_set_holds_and_is_named(run, options):
    server = run(PROGRAM, "--limit-body-bytes", "2m", *options)
    assert server.post("/", b"x" * (2 * MIB)).status == 200
    assert server.post("/", b"x" * (2 * MIB + 1)).status == 413
    server.wait_for_words(
        "/: refused with 413: 2097153 bytes of its body; --limit-body-bytes is 2097152")
    assert server.said().count("--limit-body-bytes is") == 1


def test_the_spool_is_bounded_and_freed(run, options):
    server = run(PROGRAM, "--body-spool-bytes", "4m", *options)
    assert server.post("/hold", b"x" * (3 * MIB)).status == 200
    # What it takes is freed with the file, not with the request.
    assert server.post("/", b"x" * (2 * MIB)).status == 503
    server.wait_for_words("--body-spool-bytes 4194304")
    assert server.post("/", b"x" * MIB).status == 200
    assert server.get("/drop").status == 200
    deadline = time.monotonic() + 5
    while server.post("/", b"x" * (3 * MIB)).status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_gibibyte_is_the_most(run):
    server = run(PROGRAM)
    answer = server.ask(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1073741825\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")
    server.wait_for_words("longer than 1073741824 bytes")


def test_a_folder_that_cannot_be_written_to_is_named(run, tmp_path):
    folder = tmp_path / "spool"
    folder.mkdir()
    server = run(PROGRAM, "--body-spool", str(folder))
    # It was there at the start, which checks it.
    folder.rmdir()
    assert server.post("/", b"x" * (2 * MIB)).status == 503
    server.wait_for_words("could not be kept in a temporary file")
    assert server.post("/", b"x" * MIB).status == 200


def test_a_long_upload_takes_no_memory(run):
    """200 MB: they are in a file, and pass through little memory."""
    server = run(PROGRAM)
    server.post("/", b"x" * (2 * MIB))

    def resident():
        with open(f"/proc/{server.process.pid}/statm") as file:
            return int(file.read().split()[1]) * 4096

    before, most = resident(), 0
    piece, count = b"x" * MIB, 200
    with server.connect(60) as link:
        link.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                     b"Content-Length: %d\r\n\r\n" % (count * MIB))
        for _ in range(count):
            link.sendall(piece)
            most = max(most, resident())
        answer = b""
        while more := link.recv(4096):
            answer += more
    assert b"%d %d " % (count * MIB, count * MIB) in answer
    assert max(most, resident()) - before < 8 << 20
