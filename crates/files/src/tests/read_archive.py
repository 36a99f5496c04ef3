"""Reads an archive from standard input, as Python does, and writes a line for each member:
its name in hexadecimal digits, its kind, permissions, time, size, and the SHA-256 of its bytes."""

import calendar
import hashlib
import io
import sys
import tarfile
import zipfile


def write(name, kind, mode, modified, content):
    digest = hashlib.sha256(content).hexdigest()
    print(name.hex(), kind, oct(mode & 0o777), modified, len(content), digest)


def read_tar(stream):
    with tarfile.open(fileobj=stream, mode="r|", encoding="utf-8", errors="surrogateescape") as tar:
        for member in tar:
            name = member.name.encode("utf-8", "surrogateescape")
            content = b"" if member.isdir() else tar.extractfile(member).read()
            kind = "folder" if member.isdir() else "file" if member.isfile() else "other"
            write(name, kind, member.mode, int(member.mtime), content)


def read_zip(stream):
    with zipfile.ZipFile(io.BytesIO(stream.read())) as archive:
        assert archive.testzip() is None
        for member in archive.infolist():
            is_utf8 = member.flag_bits & 0x800
            name = member.filename.encode("utf-8" if is_utf8 else "cp437")
            kind = "folder" if member.is_dir() else "file"
            modified = calendar.timegm(member.date_time)
            mode, content = member.external_attr >> 16, archive.read(member)
            write(name.rstrip(b"/"), kind, mode, modified, content)


read_zip(sys.stdin.buffer) if sys.argv[1] == "zip" else read_tar(sys.stdin.buffer)
