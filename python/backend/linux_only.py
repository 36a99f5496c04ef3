"""Builds the package as maturin does. On another system than Linux, a build ends with one sentence
in place of a compiler's errors."""

import sys

if not sys.platform.startswith("linux"):
    sys.exit("Gustnado runs on Linux only: on a Mac or on Windows, install it in a container or "
             "a virtual machine")

from maturin import (  # noqa: F401
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
