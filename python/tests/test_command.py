"""The command `gustnado` of the package: what it has, and where the rest is."""

import subprocess
import sys

import pytest


def said(*words, folder=None):
    command = [sys.executable, "-m", "gustnado", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout, done.stderr


def test_help_and_version():
    for words in ([], ["--help"], ["-h"], ["help"]):
        code, text, _ = said(*words)
        assert code == 0 and "gustnado run [OPTIONS] MODULE:NAME" in text and "serve" in text
    from gustnado._gustnado import __version__

    code, text, _ = said("--version")
    assert code == 0 and text.startswith(f"gustnado {__version__} ")


@pytest.mark.parametrize("name", ["serve", "bench", "contest", "doctor", "check", "tuning", "."])
def test_what_is_elsewhere_is_said_to_be(name):
    code, _, text = said(name, ".")
    assert code == 2 and "is not in the Python package" in text and "cargo install" in text


def test_an_application_without_its_command_is_recognised(tmp_path):
    (tmp_path / "main.py").write_text("app = 5\n")
    for word in ("main:app", "main"):
        code, _, text = said(word, folder=tmp_path)
        assert code == 2 and f"did you mean `gustnado run {word}`?" in text
    code, _, text = said("srve", folder=tmp_path)
    assert code == 2 and "there is no command 'srve'" in text
