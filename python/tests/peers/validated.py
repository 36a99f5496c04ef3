"""A plugin for pytest: applications by WSGI are served with `wsgiref.validate` around them. What
fails for that is listed, with the reason; what else fails was the server's fault."""

import os
import pathlib

import pytest

DIFFERS = {}

os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(pathlib.Path(__file__).with_name("validating")), os.environ.get("PYTHONPATH", "")])


def pytest_collection_modifyitems(items):
    for item in items:
        for name in {item.name, item.originalname} & set(DIFFERS):
            item.add_marker(pytest.mark.xfail(reason=DIFFERS[name], strict=True))
