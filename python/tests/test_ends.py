"""Ends and reloads under load lose nothing: a few of the repeats of `bench/python_ends.py`."""

import importlib.util
import pathlib
import sys

import pytest

HARNESS = pathlib.Path(__file__).parents[2] / "bench" / "python_ends.py"


@pytest.fixture(scope="module")
def ends():
    if not HARNESS.exists():
        pytest.skip("bench/python_ends.py is not in a source distribution")
    found = importlib.util.spec_from_file_location("python_ends", HARNESS)
    module = importlib.util.module_from_spec(found)
    # Its processes import it by this name.
    sys.modules["python_ends"] = module
    sys.path.insert(0, str(HARNESS.parent))
    found.loader.exec_module(module)
    yield module
    sys.path.remove(str(HARNESS.parent))


def test_it_always_ends_and_loses_nothing(ends):
    wrong, answered = [], 0
    for name, _took, _code, counts, found in ends.hold(list(ends.SCENARIOS), 20, 3, []):
        wrong += [f"{name}: {one}" for one in found]
        answered += counts.get("fresh", 0) + counts.get("kept", 0)
    assert not wrong, "\n".join(wrong)
    assert answered > 100
