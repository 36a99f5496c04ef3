#!/usr/bin/env python3
"""Prints the digests of the installed Twisted for `python/gustnado/twisted/_digests.py`.

    python/tests/twisted_digests.py [--full]

Without `--full`, only those that differ from the first release there. Ends with 1 if no release
there has all functions of the installed one. `docs/adr/0012-digests-of-twisted.md` says what to do
then.
"""

import argparse
import sys
from importlib import metadata

from gustnado.twisted import _known
from gustnado.twisted._digests import CYCLONE_RELEASES, RELEASES
from gustnado.twisted._replaced import unknown
from twisted.web import static


def entry(release, digests):
    """Returns an entry of the table."""
    lines = [f'        "{name}": "{digest}",' for name, digest in digests.items()]
    return "\n".join([f'    "{release}": {{', *lines, "    },"])


def changed(digests, releases):
    newest = next(iter(releases.values()))
    return {name: digest for name, digest in digests.items() if newest.get(name) != digest}


def report(package, digests, releases, is_full):
    release = metadata.version(package)
    print(entry(release, digests if is_full else changed(digests, releases)))
    known, names = unknown(digests, releases)
    if names:
        print(f"# {package} {release} is not known. It differs from {known} in: {', '.join(names)}")
    else:
        print(f"# {package} {release} has the functions of {known}, which is known")
    return not names


def main():
    parser = argparse.ArgumentParser(description="Prints the digests of the installed Twisted.")
    parser.add_argument("--full", action="store_true", help="print all of them")
    is_full = parser.parse_args().full
    found = {**_known.functions().digests(), **_known.functions_of_files(static).digests()}
    is_known = report("twisted", found, RELEASES, is_full)
    try:
        from gustnado.twisted import _cyclone
    except ImportError:
        return not is_known
    is_known &= report("cyclone", _cyclone.digests(), CYCLONE_RELEASES, is_full)
    return not is_known


if __name__ == "__main__":
    sys.exit(main())
