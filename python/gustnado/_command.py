"""The command `gustnado`: `run` is Python's, all else is the same as without Python."""

import sys


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["run"]:
        from . import _run

        return _run.main(arguments[1:])
    from ._gustnado import command

    return command(sys.argv)
