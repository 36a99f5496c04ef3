#!/usr/bin/env python3
"""Writes the licences of what is compiled into the extension: `python/THIRD-PARTY-LICENSES`.

    python/third_party.py

Where a crate may be used under one of several licences, it is used under Apache-2.0, whose text the
package has already (`LICENSE-APACHE`). The texts of all others are copied from their sources.
"""

import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).parent
TARGET = HERE / "THIRD-PARTY-LICENSES"
HEAD = """\
The extension module of this package contains the following crates of Rust, each under
the licence named beside it. The text of Apache-2.0 is in LICENSE-APACHE; the others follow.

"""
# Its texts are in files of these names.
TEXTS = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)", re.IGNORECASE)


def crates():
    """Name and version, licence and folder of each crate that is linked, by name."""
    command = ["cargo", "tree", "--package", "gustnado-python", "--edges", "normal,no-proc-macro",
               "--prefix", "none", "--no-dedupe", "--format", "{p}|{l}"]
    lines = subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True).stdout
    found = {line.removesuffix(" (*)").partition("|")[::2] for line in lines.splitlines() if line}
    folders = folders_by_crate()
    for name, terms in sorted(found):
        if "(/" not in name:
            plain = " ".join(name.split()[:2])
            yield plain, terms, folders[plain]


def folders_by_crate():
    import json

    command = ["cargo", "metadata", "--format-version", "1"]
    done = subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True)
    return {f"{one['name']} v{one['version']}": pathlib.Path(one["manifest_path"]).parent
            for one in json.loads(done.stdout)["packages"]}


def is_apache(terms):
    """Whether Apache-2.0 is enough."""
    return " AND " not in terms and "Apache-2.0" in re.split(r" OR |/", terms)


def texts(folder, terms):
    """Those that Apache-2.0 does not cover."""
    for path in sorted(folder.iterdir()):
        if path.is_file() and TEXTS.match(path.name):
            if "APACHE" not in path.name.upper() or "Apache-2.0" not in terms:
                yield path.read_text().strip()


def main():
    lines, others = [], []
    for name, terms, folder in crates():
        used = "Apache-2.0" if is_apache(terms) else terms
        lines.append(f"{name}: {used}")
        if used != "Apache-2.0":
            rule = "-" * len(name)
            others += [f"{rule}\n{name}\n{rule}\n\n{text}\n" for text in texts(folder, terms)]
    TARGET.write_text(HEAD + "\n".join(lines) + "\n\n" + "\n".join(others))


if __name__ == "__main__":
    main()
