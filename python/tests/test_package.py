"""What the wheel consists of, and says of itself."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parents[1]


@pytest.fixture(scope="module")
def project():
    if sys.version_info < (3, 11):
        pytest.skip("this Python reads no TOML")
    import tomllib

    return tomllib.loads((HERE / "pyproject.toml").read_text())["project"]


def test_it_says_under_which_terms_and_where_it_is_from(project):
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert name in project["license-files"]
        ours = HERE.parent / name
        assert not ours.exists() or (HERE / name).read_text() == ours.read_text()
    assert {"Homepage", "Source", "Documentation", "Changelog", "Issues"} <= project["urls"].keys()


def test_every_python_from_the_least_on_is_named(project):
    least = project["requires-python"].removeprefix(">=")
    named = [one.rpartition(" ")[2] for one in project["classifiers"]
             if one.startswith("Programming Language :: Python :: 3.")]
    assert named[0] == least
    assert [int(one.split(".")[1]) for one in named] == list(range(10, 10 + len(named)))


@pytest.fixture(scope="module")
def files():
    """The files of the package that is installed, by their names."""
    try:
        found = importlib.metadata.distribution("gustnado")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("it is not installed")
    return {path.name: path for path in found.files or []}


def test_the_wheel_has_the_licence_texts(files):
    texts = {"LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-LICENSES", "py.typed"}
    assert texts <= files.keys()


def test_the_wheel_has_no_command_in_rust(files):
    if "--profile dev" in os.environ.get("MATURIN_PEP517_ARGS", ""):
        pytest.skip("it is a debug build, whose size says nothing")
    size = next(path.locate().stat().st_size for name, path in files.items()
                if name.startswith("_gustnado.") and name.endswith(".so"))
    # TLS takes half of it, certificates from an authority a tenth, compression as much. With
    # the whole command in it there would be three million more.
    assert size < 10_700_000, size


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_a_build_on_another_system_ends_with_one_sentence(system):
    text = f"import sys; sys.platform = {system!r}; import linux_only"
    done = subprocess.run([sys.executable, "-c", text], cwd=HERE / "backend",
                          capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("Gustnado runs on Linux only: ") and done.stderr.count("\n") == 1
