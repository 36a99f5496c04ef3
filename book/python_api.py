#!/usr/bin/env python3
"""Writes the documentation of the installed Python package, by pdoc.

    book/python_api.py FOLDER
"""

import pathlib
import sys

import gustnado
import pdoc

# What the package imports only when it is used, pdoc would not find.
for name in gustnado.__all__:
    setattr(gustnado, name, getattr(gustnado, name))

pdoc.pdoc("gustnado", "gustnado.twisted", output_directory=pathlib.Path(sys.argv[1]))
