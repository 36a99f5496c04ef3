"""What can be set: each flag of `gustnado run`, which is a variable and an argument of `run`, too.

One table for the command line, the environment, keyword arguments and help. The engine's own
settings are in it as the engine lists them.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re

from . import _gustnado, _sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

APPLICATION, ADDRESS, PROCESSES = "Application", "Address", "Processes"
OUTPUT, DEVELOPMENT = "Output", "Development"
# The groups used most; those of the engine follow in help.
FRIENDLY = (APPLICATION, ADDRESS, PROCESSES, OUTPUT, DEVELOPMENT)

# Whether, and how often, a flag takes a value.
VALUE, SWITCH, REPEATED, OPTIONAL = "value", "switch", "repeated", "optional"
# It takes a value behind an equals sign only, and is "true" without one.
BARE = "bare"

# As many as the engine has threads at most. (Each is a process with memory of its own.)
WORKERS_MAX = 1024
# `--timeout-keep-alive 0`, as uvicorn and gunicorn have it: each connection has one request.
NEVER = "0"
DAY = 86_400.0
YES, NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
LOG_LEVELS = {
    "debug": "debug", "info": "info", "warning": "warning", "error": "error",
    "critical": "critical", "trace": "debug", "warn": "warning", "notset": "debug",
}


class SettingError(ValueError):
    """A setting is wrong. Its text is one line for the user, with the remedy."""


@dataclasses.dataclass(frozen=True)
class Option:
    """- `read`: makes a value of its text, and raises ValueError for one that is none; `None`
    where the engine reads it.
    - `takes`: what it takes, for messages.
    - `field`: what it is called in a plan.
    - `fits_folder`: a folder may have its own."""

    name: str
    takes: str
    default: str
    placeholder: str
    group: str
    doc: str
    read: Callable[[str], Any] | None = None
    field: str = ""
    kind: str = VALUE
    short: str = ""
    fits_folder: bool = False

    @property
    def flag(self) -> str:
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        return "GUSTNADO_" + self.name.upper().replace("-", "_")

    def value(self, text: str, place: str, is_variable: bool = False) -> Any:
        """Its value by a text.

        - `place`: what a user has written: `--port`, `port` or `GUSTNADO_PORT`."""
        if self.name == "timeout-keep-alive" and _is_zero(text):
            return NEVER
        if self.read is None:
            if self.name == "port" and place == "-p" and not text.isdigit():
                raise SettingError(
                    f'-p: expected a port, from 0 to 65535, found "{text}"; a file for the '
                    "process's number is --pid FILE"
                )
            try:
                _gustnado.check_setting(self.name, text, place, is_variable)
            except ValueError as error:
                raise SettingError(str(error)) from None
            return text
        try:
            return self.read(text)
        except ValueError as error:
            remedy = error.args[1] if len(error.args) > 1 else (
                f"{'unset' if is_variable else 'leave'} it{'' if is_variable else ' out'} "
                f"for {self.default}"
            )
            raise SettingError(
                f'{place}: expected {self.takes}, found "{text[:60]}"; {remedy}'
            ) from None


# --- How texts are read.

def whole(
    least: int, most: float = math.inf, words: tuple[str, ...] = ()
) -> Callable[[str], int | str]:
    def read(text: str) -> int | str:
        if text.strip().lower() in words:
            return text.strip().lower()
        number = int(text)
        if not least <= number <= most:
            raise ValueError(text)
        return number

    return read


def one_of(
    names: tuple[str, ...], synonyms: dict[str, str] | None = None,
    elsewhere: dict[str, str] | None = None,
) -> Callable[[str], str]:
    """- `elsewhere`: messages for values that other servers take."""

    def read(text: str) -> str:
        lower = text.strip().lower()
        if elsewhere and lower in elsewhere:
            raise ValueError(text, elsewhere[lower])
        lower = (synonyms or {}).get(lower, lower)
        if lower not in names:
            near = difflib.get_close_matches(lower, names, 1)
            raise ValueError(text, f"did you mean {near[0]}?") if near else ValueError(text)
        return lower

    return read


def seconds(text: str) -> float:
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|h|d|)\s*", text)
    if not found:
        raise ValueError(text)
    factor = {"ms": 0.001, "s": 1, "": 1, "m": 60, "h": 3600, "d": DAY}[found[2]]
    number = float(found[1]) * factor
    if number > 366 * DAY:
        raise ValueError(text)
    return number


def _is_zero(text: str) -> bool:
    try:
        return seconds(text) == 0
    except ValueError:
        return False


def size(text: str) -> int:
    found = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)b?\s*", text.lower())
    if not found:
        raise ValueError(text)
    return int(found[1]) * UNITS[found[2]]


def switch(text: str) -> bool:
    lower = text.strip().lower()
    if lower not in YES + NO:
        raise ValueError(text)
    return lower in YES


def interval(text: str) -> float:
    number = float(text)
    if not 0 < number <= 1:
        raise ValueError(text)
    return number


def umask(text: str) -> int:
    """Parses a mode as gunicorn does: octal with a leading zero."""
    number = int(text, 8) if re.fullmatch(r"0[0-7]+", text) else int(text, 0)
    if not 0 <= number <= 0o777:
        raise ValueError(text)
    return number


def mount(text: str) -> tuple[str, str]:
    path, equals, folder = text.partition("=")
    if not equals or not path.startswith("/") or not folder:
        raise ValueError(text, "write it as --static /assets=./assets")
    return path, folder


def pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(text, "write it as NAME=value")
    return name, value


def address(text: str) -> str:
    """Returns a listener in the engine's form: its address, and settings of its own behind it.
    Without a host: every interface."""
    text, *own = re.split(r"(?<!\\)[ \t]+", text.strip(), maxsplit=1)
    found = _address(text)
    try:
        _gustnado.parse_listener(" ".join([found, *own]))
    except ValueError as error:
        raise ValueError(" ".join([text, *own]), str(error).removeprefix("listen: ")) from None
    return " ".join([found, *own])


def _address(text: str) -> str:
    text = text.removeprefix("tcp://")
    if text.startswith("unix:"):
        path = re.sub("^//+", "/", text.removeprefix("unix:"))
        if not path:
            raise ValueError(text, "write the socket's path behind unix:")
        return f"unix:{path}"
    if text.startswith("fd:"):
        return f"fd:{whole(0, 1 << 20)(text.removeprefix('fd:').lstrip('/'))}"
    host, colon, port = text.rpartition(":")
    if not colon or "]" in port:
        raise ValueError(text, f"write its port behind a colon, as in {text or '127.0.0.1'}:8080")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(text, "a port is a number from 0 to 65535")
    return f"{host or '0.0.0.0'}:{int(port)}"


def text(text: str) -> str:
    return text


# --- The table.

_TIME = "a time such as 500ms, 30s or 5m"
_WHOLE = "a whole number from 0"

_OWN = [
    Option("interface", "one of auto, native, asgi, wsgi", "auto", "NAME", APPLICATION,
           "What kind of application it is; auto is what it looks like",
           one_of(("auto", "native", "asgi", "wsgi"), {"asgi3": "asgi"}, {
               "asgi2": "ASGI 2 is not spoken: asgiref.compatibility makes it ASGI 3",
               "asginl": "say --interface asgi --lifespan off",
               "rsgi": "RSGI is granian's own; say asgi or wsgi",
           }), "interface"),
    Option("factory", "true or false", "false", "BOOL", APPLICATION,
           "The name is a function that makes the application", switch, "factory", SWITCH),
    Option("app-dir", "a path", ".", "DIR", APPLICATION,
           "Where the application's module is looked for first", text, "app_dir"),
    Option("chdir", "a path", "where it is started", "DIR", APPLICATION,
           "Folder to work in, before anything else is done", text),
    Option("env-file", "a path", "none", "FILE", APPLICATION,
           "File of lines NAME=value for the environment; what is set already stays; may be "
           "repeated", text, kind=REPEATED),
    Option("env", "NAME=value", "none", "NAME=VALUE", APPLICATION,
           "Variable for the environment; may be repeated", pair, kind=REPEATED, short="-e"),
    Option("lifespan", "one of auto, on, off", "auto", "NAME", APPLICATION,
           "Whether an ASGI application has a lifespan", one_of(("auto", "on", "off")),
           "lifespan"),
    Option("lifespan-timeout", _TIME, "30s", "TIME", APPLICATION,
           "How long its shutdown may take, once responses have ended", seconds,
           "lifespan_timeout"),
    Option("loop", "one of auto, asyncio, uvloop", "auto", "NAME", APPLICATION,
           "Loop that coroutines run on; auto is uvloop where it is installed",
           one_of(("auto", "asyncio", "uvloop")), "loop"),
    Option("ws", "one of auto, none", "auto", "NAME", APPLICATION,
           "Whether an ASGI application gets requests for WebSockets; none: they get 426",
           one_of(("auto", "none"), dict.fromkeys(
               ("websockets", "websockets-sansio", "wsproto", "true", "1", "yes", "on"), "auto")
               | dict.fromkeys(("false", "0", "no", "off"), "none")), "ws"),
    Option("root-path", "a path", "none", "PATH", APPLICATION,
           "Path below which a proxy has mounted the application", text, "root_path"),
    Option("static", "/path=folder", "none", "/PATH=DIR", APPLICATION,
           "Folder that the engine serves, without Python; may be repeated", mount,
           kind=REPEATED),
    Option("bind", "an address such as 127.0.0.1:80, :80 for every interface, [::1]:80, "
           "unix:/run/site.sock or fd:3", "127.0.0.1:8080", "ADDR", ADDRESS,
           "Where to listen: 127.0.0.1:80, :80 for every interface, unix:PATH or fd:3; may be "
           "repeated", address, kind=REPEATED, short="-b"),
    Option("uds-permissions", "permissions in octal such as 660", "666", "MODE", ADDRESS,
           "Who may connect to a Unix socket: everyone who reaches it", _sockets.mode_of),
    Option("fd", "a descriptor's number", "none", "N", ADDRESS,
           "Descriptor that listens already", whole(0, 1 << 20)),
    Option("workers", "a whole number from 1 to 1024, or auto", "1", "N", PROCESSES,
           "Worker processes; auto is one for each CPU", whole(1, WORKERS_MAX, ("auto",)),
           "workers", short="-w"),
    Option("threads", "a whole number from 1 to 10000", "1", "N", PROCESSES,
           "Threads that call a WSGI application in each process; 1 is the engine's own, which "
           "serves nothing else meanwhile", whole(1, 10_000), "threads"),
    Option("backlog-of-threads", "a whole number from 1", "1024", "N", PROCESSES,
           "Requests that wait for a thread; of more the oldest gets 503", whole(1),
           "waiting_max"),
    Option("preload", "true or false", "false", "BOOL", PROCESSES,
           "Load the application once, before workers are made, so that they share its memory",
           switch, "preload", SWITCH),
    Option("timeout", f"{_TIME}, or 0 for none", "0", "TIME", PROCESSES,
           "A worker whose thread is held for longer is replaced, and its stack printed; 0: none",
           seconds, "timeout", short="-t"),
    Option("timeout-graceful-shutdown", _TIME, "10s", "TIME", PROCESSES,
           "How long responses may take once the server ends", seconds, "grace"),
    Option("max-requests", _WHOLE, "0", "N", PROCESSES,
           "Replace a worker after this many requests; 0: never", whole(0), "max_requests"),
    Option("max-requests-jitter", _WHOLE, "0", "N", PROCESSES,
           "And after up to this many more, so that not all are replaced at once", whole(0),
           "max_requests_jitter"),
    Option("max-worker-rss", "a size such as 300m", "0", "SIZE", PROCESSES,
           "A worker is replaced when it has more memory; 0: never", size, "max_worker_rss"),
    Option("max-lifetime", _TIME, "0", "TIME", PROCESSES,
           "A worker is replaced after so long; 0: never", seconds, "max_lifetime"),
    Option("slow-handler", _TIME, "1s", "TIME", PROCESSES,
           "A handler that holds the engine's thread for longer is named in the log; 0: none",
           seconds, "slow_handler"),
    Option("switch-interval", "seconds, from 0 to 1", "0.0005", "SECONDS", PROCESSES,
           "For how long one of Python's threads may go on before others are let in", interval,
           "switch_interval"),
    Option("pid", "a path", "none", "FILE", PROCESSES,
           "File for the number of the process, until it ends", text, "pid"),
    Option("umask", "a file mode such as 027", "the one it is started with", "MODE", PROCESSES,
           "Permissions that new files and Unix sockets do not get", umask, short="-m"),
    Option("name", "a name", "none", "NAME", PROCESSES,
           "Name of the processes in ps and top, of which 15 bytes count", text, "name",
           short="-n"),
    Option("log-level", "one of debug, info, warning, error, critical", "info", "NAME", OUTPUT,
           "What is written to standard error", one_of(tuple(LOG_LEVELS), LOG_LEVELS),
           "log_level"),
    Option("log-config", "a path", "none", "FILE", OUTPUT,
           "Configuration of Python's logging: .json, .yaml, or a .ini file", text,
           "log_config"),
    Option("error-log", "a path, or -", "-", "FILE", OUTPUT,
           "File to write standard error to; - is standard error itself", text, "error_log"),
    Option("capture-output", "true or false", "false", "BOOL", OUTPUT,
           "Write standard output to --error-log too", switch, "capture_output", SWITCH),
    Option("reload", "true or false", "false", "BOOL", DEVELOPMENT,
           "Start again when a source file changes", switch, "reload", SWITCH),
    Option("reload-dir", "a path", "--app-dir", "DIR", DEVELOPMENT,
           "Where to look for changes; may be repeated", text, kind=REPEATED),
]

# The engine's settings used most, in the order of help.
_FRIENDLY_OF_ENGINE = ("host", "port", "uds", "forwarded-allow-ips", "access-log",
                       "access-log-format", "quiet")
_ADDRESSES = ("host", "port", "bind", "uds", "uds-permissions", "fd", "forwarded-allow-ips")
_SHORTS_OF_ENGINE = {"port": "-p", "user": "-u"}
# Settings of several: their texts are separated by commas.
_LISTS_OF_ENGINE = (
    "listen", "forwarded-allow-ips", "proxy-allow-from", "index", "try-files", "mime",
    "compress-types", "forbidden", "immutable-folders", "allow", "deny", "cors", "cors-methods",
    "cors-headers", "error-page",
)
_HEADINGS = {"Address": "Kernel and proxies", "Output": "Statistics"}

# Features of the engine that conflict with an application or do not apply to one.
UNFIT = {
    "root": "the application serves every path; for a folder next to it use "
            "--static /path=DIR",
    "workers-max": "an application runs on one thread of each process; for more of them say "
                   "--workers N",
    "grow-after": "it belongs to --workers-max, which applications cannot have",
    "shrink-period": "it belongs to --workers-max, which applications cannot have",
    "restart-hung": "--timeout does that for an application",
    "cache-workers": "it belongs to --workers-max, which applications cannot have",
    "blocking-threads": "the threads that call a WSGI application are --threads N; ASGI "
                        "applications have none",
    "control": "an application has no configuration file; HUP starts its workers again",
    "watch-config": "an application has no configuration file; --reload watches its sources",
    "uds-mode": "permissions of Unix sockets are --uds-permissions MODE",
    "blocking-queue": "requests that wait for a thread are counted by --backlog-of-threads N",
}


def _of_engine(row: tuple[str, str, bool, str, str, str, str, bool]) -> Option:
    name, doc, is_switch, heading, default, takes, placeholder, fits_folder = row
    kind = SWITCH if is_switch else REPEATED if name in _LISTS_OF_ENGINE else VALUE
    if name == "access-log":
        kind = OPTIONAL
    elif name == "spa":
        kind = BARE
    if name not in _FRIENDLY_OF_ENGINE:
        heading = _HEADINGS.get(heading, heading)
    # (`--bind` documents its values.)
    read = address if name == "listen" else None
    return Option(name, takes, default or "none", placeholder, heading, doc, read, kind=kind,
                  short=_SHORTS_OF_ENGINE.get(name, ""), fits_folder=fits_folder)


def _table() -> dict[str, Option]:
    own = {option.name: option for option in _OWN}
    engine = [_of_engine(row) for row in _gustnado.settings() if row[0] not in own]
    first = {name: place for place, name in enumerate(_FRIENDLY_OF_ENGINE)}
    engine.sort(key=lambda option: first.get(option.name, len(first)))
    found = {option.name: option for option in [*_OWN, *engine]}
    usual = [name for name in found if found[name].group == ADDRESS]
    usual.sort(key=lambda name: _ADDRESSES.index(name))
    return {**{name: found[name] for name in usual}, **found}


OPTIONS = _table()
# Everything except what is refused together with an application.
FIT = {name: option for name, option in OPTIONS.items() if name not in UNFIT}


def nearest(name: str, names: Iterable[str]) -> str:
    """Returns a suggestion for a mistyped name; empty without one."""
    found = difflib.get_close_matches(name, list(names), 1, 0.7)
    return found[0] if found else ""
