"""Runs the tests that peers of this server have for themselves:

    python run.py FOLDER [WORDS FOR PYTEST...]

uvicorn's cases of HTTP and WebSocket, gunicorn's raw requests (both from the sdists of the
versions that the lists of differences name, fetched into FOLDER), granian's cases, rewritten, and
every test of an application by WSGI once more, with `wsgiref.validate` around it."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import gunicorn_differs
import uvicorn_differs

HERE = pathlib.Path(__file__).resolve().parent


def main(folder, *words):
    folder = pathlib.Path(folder).resolve()
    uvicorn = unpacked(folder, "uvicorn", uvicorn_differs.VERSION)
    gunicorn = unpacked(folder, "gunicorn", gunicorn_differs.VERSION)
    theirs = cases_of_uvicorn(uvicorn, folder / "uvicorn-cases")
    environment = {**os.environ, "GUNICORN_TESTS": str(gunicorn / "tests"),
                   "PYTHONPATH": os.pathsep.join([str(HERE), str(theirs), python_path()])}
    failed = False
    for options in [
        ["-n", "3", "-p", "uvicorn_stand_in", f"--rootdir={theirs}",
         str(theirs / "tests/protocols")],
        ["-n", "3", str(HERE / "gunicorn_cases.py"), str(HERE / "granian_cases.py")],
        ["-n", "3", "-p", "validated", *files_with_wsgi()],
    ]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *words]
        failed |= subprocess.run(command, env=environment, cwd=folder).returncode != 0
    return int(failed)


def unpacked(folder, name, version):
    """An sdist's folder. It is fetched where it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    there = folder / f"{name}-{version}"
    if not there.exists():
        archive = folder / f"{name}-{version}.tar.gz"
        if not archive.exists():
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                            "--no-binary", name, "--dest", folder, f"{name}=={version}"],
                           check=True)
        with tarfile.open(archive) as file:
            # (Python 3.11.2 of Debian has no filters yet.)
            safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            file.extractall(folder, **safe)
    return there


def cases_of_uvicorn(source, there):
    """The cases without their conftest: its fixtures are the stand-in's."""
    shutil.rmtree(there, ignore_errors=True)
    for name in ("__init__.py", "response.py", "utils.py", "protocols/__init__.py",
                 "protocols/test_http.py", "protocols/test_websocket.py"):
        copy = there / "tests" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / "tests" / name, copy)
    return there


def files_with_wsgi():
    return sorted(str(path) for path in HERE.parent.glob("test_*.py")
                  if "start_response" in path.read_text())


def python_path():
    return os.environ.get("PYTHONPATH", "")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
