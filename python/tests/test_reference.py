"""The reference page, as the package's signatures and docstrings make it."""

import re
from pathlib import Path

import gustnado
import reference

PAGE = Path(__file__).parents[2] / "docs" / "python" / "reference.md"


def test_it_is_up_to_date():
    assert PAGE.read_text() == reference.page(), (
        "python tests/reference.py > ../docs/python/reference.md would make it right")


def test_it_has_every_public_name():
    assert set(reference.SOURCES) == set(gustnado.__all__)
    named = set(re.findall(r"^### (\S+)$", PAGE.read_text(), re.M))
    for name in gustnado.__all__:
        thing = getattr(gustnado, name)
        if isinstance(thing, type) and not issubclass(thing, BaseException):
            public = {f"{name}.{member}" for member in dir(thing) if member[0] != "_"}
            assert public <= named


def test_every_type_of_a_signature_is_explained():
    blocks = "".join(re.findall(r"^```text\n(.*?)^```", PAGE.read_text(), re.M | re.S))
    private = set(re.findall(r"(?<![\w.])_[A-Z]\w+", blocks))
    assert private <= set(reference.ALIASES), private
