"""Settings from environment variables, and files of variables."""

from __future__ import annotations

import os
import re

from ._options import FIT, OPTIONS, UNFIT, SettingError, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

# Variables of other conventions: the settings they mean unless those of `GUSTNADO_` are set.
PLAIN = {"PORT": "port", "WEB_CONCURRENCY": "workers"}
# Variables of `gustnado serve`, which are no mistakes.
_OF_OTHERS = ("GUSTNADO_CONFIG",)

_LINE = re.compile(
    r"""[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][\w.-]*)[ \t]*=[ \t]*
        (?:'(?P<literal>[^']*)'|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\r\n]*?))
        [ \t]*(?:(?<=[ \t'"=])\#[^\r\n]*)?(?:\r?\n|$)""",
    re.VERBOSE | re.DOTALL,
)
_EMPTY = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r?\n|$)")
_NAMED = re.compile(r"\$\{([^}:]+)(?::-([^}]*))?\}")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def variables(environ: Mapping[str, str]) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Returns the settings that are variables, by their names: a text and the variable. And
    warnings about variables that are no settings."""
    found: dict[str, tuple[str, str]] = {}
    warnings: list[str] = []
    # (GUSTNADO_ENV would describe the environment that it is part of.)
    known = {option.variable: name for name, option in OPTIONS.items() if name != "env"}
    for variable in sorted(environ):
        text = environ[variable]
        name = known.get(variable)
        if name is None and variable not in PLAIN:
            if variable.startswith("GUSTNADO_") and not _is_service_link(variable):
                warnings.append(_stray(variable))
        elif text.startswith(("tcp://", "udp://", "sctp://")):
            warnings.append(
                f"{variable} is a Kubernetes service link, not a setting: ignored; set "
                "enableServiceLinks: false, or call the service something else"
            )
        elif name in UNFIT:
            warnings.append(f"{variable}: ignored; {UNFIT[name]}")
        elif name is not None:
            found[name] = (text, variable)
    for variable, name in PLAIN.items():
        text = environ.get(variable, "")
        # (`found` has no plain ones yet.)
        if text and name not in found and "://" not in text:
            found[name] = (text, variable)
    return found, warnings


def _is_service_link(variable: str) -> bool:
    return variable.startswith(("GUSTNADO_SERVICE_", "GUSTNADO_PORT_"))


def _stray(variable: str) -> str:
    if variable in _OF_OTHERS:
        return f"{variable}: ignored; `gustnado run` reads no configuration file"
    near = nearest(variable, [option.variable for option in FIT.values()])
    hint = f"did you mean {near}?" if near else "`gustnado run --help` lists them all"
    return f"{variable} is no setting: ignored; {hint}"


def load(path: str, environ: MutableMapping[str, str] | None = None) -> None:
    """Sets the variables of a file, except those that are set already."""
    environ = os.environ if environ is None else environ
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise SettingError(f"--env-file {path}: {reason}; name a file that can be read") from None
    for name, value in assignments(text, path, environ):
        environ.setdefault(name, value)


def assignments(
    text: str, path: str, environ: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The names and values of a file of lines NAME=value, as python-dotenv reads them."""
    place = 0
    known: dict[str, str] = {}
    while place < len(text):
        if found := _EMPTY.match(text, place):
            if found.end() == place:
                return
        elif found := _LINE.match(text, place):
            value = _value(found, {**known, **environ})
            known[found["name"]] = value
            yield found["name"], value
        else:
            line = text.count("\n", 0, place) + 1
            raise SettingError(
                f"{path}:{line}: expected NAME=value, found "
                f'"{text[place:].splitlines()[0][:60]}"; a # begins a comment'
            )
        place = found.end()


def _value(found: re.Match[str], known: Mapping[str, str]) -> str:
    if found["literal"] is not None:
        return found["literal"]
    if found["quoted"] is not None:
        text = re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[1]), found["quoted"],
                      flags=re.DOTALL)
    else:
        text = re.split(r"(?:^|\s)#", found["bare"], maxsplit=1)[0].strip()
    return _NAMED.sub(lambda one: known.get(one[1]) or one[2] or "", text)
