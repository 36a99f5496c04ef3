"""The command `gustnado` of the Python package: `run`, and pointers to everything else."""

from __future__ import annotations

import os
import signal
import sys

HELP = """\
Serve Python applications: functions of a gustnado.App, ASGI and WSGI.

Usage: gustnado run [OPTIONS] MODULE:NAME

  gustnado run --port 8000 main:app                  an application, in one process
  gustnado run --workers 4 main:app                  in four
  gustnado run --threads 8 mysite.wsgi:application   Django or Flask
  gustnado run -h                                    the usual settings
  gustnado run --help                                all options

  -h, --help      print this
  -V, --version   print the version

{elsewhere}
"""
# Subcommands of the command in Rust, which has the same name.
ELSEWHERE = ("serve", "check", "reload", "init", "import", "bench", "contest", "doctor", "schema",
             "tuning")
REMEDY = """\
Folders, configuration files, load tests and the rest ({names}) are in the Rust command of the same
name: `cargo install --path crates/cli` in the sources, https://github.com/gustnado/gustnado.\
"""


def main() -> int:
    arguments = sys.argv[1:]
    first = arguments[0] if arguments else "--help"
    if first == "run":
        # Nothing was started yet, so nothing has to be stopped.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: os._exit(0))
        from . import _run

        return _run.main(arguments[1:])
    if arguments[:2] == ["help", "run"]:
        from . import _run

        return _run.main(["--help"])
    elsewhere = REMEDY.format(names=", ".join(ELSEWHERE))
    if first in ("-h", "--help", "help"):
        print(HELP.format(elsewhere=elsewhere), end="")
        return 0
    if first in ("-V", "--version"):
        from ._gustnado import __version__

        print(f"gustnado {__version__} for Python {sys.version.split()[0]}")
        return 0
    print(f"gustnado: {_not_here(first, elsewhere)}", file=sys.stderr)
    return 2


def _not_here(first: str, elsewhere: str) -> str:
    if first in ELSEWHERE or os.path.isdir(first):
        what = f"`{first}`" if first in ELSEWHERE else "serving a folder"
        return f"{what} is not in the Python package\n{elsewhere}"
    if ":" in first or os.path.isfile(f"{first}.py"):
        return f"there is no command {first!r}; did you mean `gustnado run {first}`?"
    return f"there is no command {first!r}; see gustnado --help"
