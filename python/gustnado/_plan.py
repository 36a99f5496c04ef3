"""The plan of a server: its settings, independent of their source."""

from __future__ import annotations

import dataclasses
import json
import os

from . import _environment, _sockets
from ._options import FIT, NEVER, OPTIONS, REPEATED, UNFIT, WORKERS_MAX, YES, SettingError, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableMapping
    from typing import Any

    from ._options import Option
    from ._sockets import Listening

    # By the name of a setting: its texts, each with the place that it is from.
    Given = dict[str, list[tuple[str, str]]]
    # The same, and whether each is from a variable.
    _Said = dict[str, list[tuple[str, str, bool]]]

GRACE_SECONDS = 10.0
LIFESPAN_SECONDS = 30.0
# Settings of sockets that are open already.
_OF_SOCKETS = ("host", "port", "uds", "uds-permissions", "uds-owner", "backlog")


@dataclasses.dataclass
class Plan:
    """It can be passed to another process, unless the application is an object."""

    # An application, or `module:name`.
    app: Any
    # Its name in the banner, also after it was loaded.
    title: str = "the application"
    interface: str = "auto"
    factory: bool = False
    app_dir: str = "."
    # The engine's settings, by the names of the command line.
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    # Folders by path, which the engine serves.
    static: dict[str, str] = dataclasses.field(default_factory=dict)
    workers: int = 1
    # The application is imported once, before workers begin as copies of the process that did.
    preload: bool = False
    # Threads that call a WSGI application; with one, the engine's own does.
    threads: int = 1
    waiting_max: int = 1024
    loop: str = "auto"
    # Whether an ASGI application gets requests for WebSockets.
    ws: str = "auto"
    lifespan: str = "auto"
    root_path: str = ""
    grace: float = GRACE_SECONDS
    # Seconds that an ASGI application's shutdown may take, once the responses have ended.
    lifespan_timeout: float = LIFESPAN_SECONDS
    # Seconds that a handler may hold the engine's thread without being named in the log; 0: any.
    slow_handler: float = 1.0
    # Seconds for which one of Python's threads may go on before others are let in.
    switch_interval: float = 0.0005
    max_requests: int = 0
    max_requests_jitter: int = 0
    max_worker_rss: int = 0
    # Seconds after which a process is replaced, and for which its thread may be held.
    max_lifetime: float = 0.0
    timeout: float = 0.0
    name: str = ""
    # The file that has the number of the process.
    pid: str = ""
    log_level: str = "info"
    log_config: str = ""
    # The file that standard error goes to, and whether standard output does too.
    error_log: str = "-"
    capture_output: bool = False
    # Only errors are printed.
    quiet: bool = False
    reload: bool = False
    reload_dirs: list[str] = dataclasses.field(default_factory=list)
    # Of a worker: the file in memory with all workers' loads, and its place there.
    shared_load: tuple[int, int] | None = None
    # The same for the file with all workers' counters.
    shared_stats: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        check_workers(self.workers)
        # Whole segments: `/app/` and `app` mean `/app`.
        segments = self.root_path.strip("/")
        self.root_path = f"/{segments}" if segments else ""

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        return cls(**json.loads(text))

    def on(self, listening: Listening) -> Plan:
        """The same on sockets that are open already."""
        settings = {name: value for name, value in self.settings.items()
                    if name not in _OF_SOCKETS}
        return dataclasses.replace(self, settings={**settings, "listen": listening.engine_form()})

    def engine_settings(self) -> list[tuple[str, str]]:
        """Returns the settings in the engine's form: pairs of text. A process has one worker."""
        # (Python's loops have no half-close: a client that stops sending counts as disconnected.)
        # (Clients send a message of a WebSocket as one frame, however long it is.)
        frame_max = self.settings.get("ws-message-bytes-max", "16m")
        settings = {"half-close-timeout": "0s", "ws-frame-bytes-max": frame_max, **self.settings,
                    "workers": "1"}
        # (The engine takes whole numbers.)
        settings["timeout-graceful-shutdown"] = f"{round(self.grace * 1000)}ms"
        return [(name, text_of(value)) for name, value in settings.items()]


def check_workers(count: int) -> None:
    """Raises ValueError for a number of worker processes that there cannot be."""
    if not 1 <= count <= WORKERS_MAX:
        raise ValueError(f"expected 1 to {WORKERS_MAX} worker processes, found {count}")


def text_of(value: object) -> str:
    """Formats a setting's value for messages."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def folder_settings(given: Mapping[str, object]) -> list[tuple[str, str]]:
    """Keyword arguments of a folder in the engine's form, which checks the values.

    Raises SettingError for what is no setting of a folder."""
    found = []
    for argument, value in given.items():
        name = argument.replace("_", "-")
        option = OPTIONS.get(name)
        if option is None or not option.fits_folder:
            why = "is the server's alone; give it to the server"
            if option is None:
                hint = _hint(name, [one for one in FIT if FIT[one].fits_folder])
                why = f"is no setting; {hint}"
            raise SettingError(f'files: "{argument}" {why}')
        if value is not None:
            found.append((name, _text(option, value)))
    return found


def _text(option: Option, value: object) -> str:
    """Formats the value of an argument as a flag has it. There an empty text is an unset variable,
    which some settings refuse; an empty list is meant."""
    if option.fits_folder and value in ([], ()):
        return "off"
    if option.placeholder == "TIME" and option.read is None and isinstance(value, float):
        # (The engine takes whole numbers.)
        return f"{round(value * 1000)}ms"
    return text_of(value)


def _hint(name: str, names: Iterable[str]) -> str:
    """Returns the argument that was probably meant, or where all are listed."""
    near = nearest(name, names).replace("-", "_")
    return f'did you mean "{near}"?' if near else "`gustnado run --help` lists them all"


def arguments_of(given: Mapping[str, object]) -> Given:
    """Keyword arguments as settings: `timeout_keep_alive="30s"` is `--timeout-keep-alive 30s`."""
    found: Given = {}
    for argument, value in given.items():
        name = _ARGUMENTS.get(argument, argument.replace("_", "-"))
        if name not in OPTIONS:
            raise SettingError(f'no setting is called "{argument}"; {_hint(name, FIT)}')
        if name in UNFIT:
            raise SettingError(f"{argument}: {UNFIT[name]}")
        if value is None:
            continue
        if isinstance(value, dict):
            value = [f"{key}={one}" for key, one in value.items()]
        option = OPTIONS[name]
        is_meant = value or not option.fits_folder
        if option.kind == REPEATED and isinstance(value, (list, tuple)) and is_meant:
            found[name] = [(str(one), argument) for one in value]
        else:
            found[name] = [(_text(option, value), argument)]
    return found


# Arguments that are not called as flags are.
_ARGUMENTS = {"grace": "timeout-graceful-shutdown"}


def plan_of(
    app: object, given: Given, weak: Given | None = None,
    environ: MutableMapping[str, str] | None = None,
) -> tuple[Plan, list[str]]:
    """Returns a plan, and lines that a user should see.

    - `given`: by the names of settings, lists of pairs: a text, and what a user has written.
    - `weak`: the same, for what counts only if the environment says nothing, either."""
    environ = os.environ if environ is None else environ
    _prepare(given, environ)
    variables, warnings = _environment.variables(environ)
    # Whether a variable says it decides about the words of a refusal.
    said: _Said = {name: [(*pair, False) for pair in pairs] for name, pairs in given.items()}
    for name, (text, variable) in variables.items():
        if name not in said:
            texts = text.split(",") if OPTIONS[name].kind == REPEATED else [text]
            said[name] = [(one.strip(), variable, True) for one in texts]
    for name, pairs in (weak or {}).items():
        said.setdefault(name, [(*pair, False) for pair in pairs])
    warnings += _settle_address(said) + _settle_memory(said)
    values = {name: [OPTIONS[name].value(*one) for one in texts] for name, texts in said.items()}
    return _plan(app, values), warnings


def _prepare(given: Given, environ: MutableMapping[str, str]) -> None:
    """Sets the folder and the environment, before everything else is read."""
    for text, place in given.get("chdir") or _one_variable("chdir", environ):
        try:
            os.chdir(text)
        except OSError as error:
            raise SettingError(f"{place} {text}: {error.strerror}; name a folder") from None
    for text, place in given.get("env", ()):
        name, value = OPTIONS["env"].value(text, place)
        environ[name] = value
    for text, _place in given.get("env-file") or _one_variable("env-file", environ):
        _environment.load(text, environ)


def _one_variable(name: str, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    variable = OPTIONS[name].variable
    return [(environ[variable], variable)] if environ.get(variable) else []


def _settle_address(said: _Said) -> list[str]:
    """Leaves one way to say where to listen: flags count more than variables, and `listen`, `bind`,
    `uds` and `fd` more than `host` and `port`. Returns what does not count, in words."""
    direct, parts = ("bind", "listen", "uds", "fd"), ("host", "port")

    def of(names: tuple[str, ...], is_variable: bool) -> list[str]:
        return [name for name in names if name in said and said[name][0][2] is is_variable]

    for winners, losers in [
        (of(direct, False), of(direct + parts, True) + of(parts, False)),
        (of(parts, False), of(direct, True)),
        (of(direct, True), of(parts, True)),
    ]:
        if winners and losers:
            winner, gone = said[winners[0]][0][1], [said.pop(name)[0][1] for name in losers]
            # (Platforms set PORT for every program.)
            ignored = [name for name in gone if name != "PORT"]
            return [f"{name} is ignored: {winner} takes precedence" for name in ignored]
    return []


def _settle_memory(said: _Said) -> list[str]:
    """Gives `max-memory` the meaning that it had before: `max-worker-rss`, unless that is set, too,
    or the value has no other meaning. Returns what to say about that, in words."""
    if "max-memory" not in said or "max-worker-rss" in said:
        return []
    text, place, _ = said["max-memory"][-1]
    if text.strip().lower() == "auto":
        return []
    said["max-worker-rss"] = said.pop("max-memory")
    written = "max-worker-rss" if place.startswith("-") else "max_worker_rss"
    if place.isupper():
        written = OPTIONS["max-worker-rss"].variable
    prefix = "--" if place.startswith("-") else ""
    return [f"{place} {text} replaces workers that have more memory, as before: say "
            f"{prefix}{written} for that; from the next version {place} is the memory for "
            f"connections, as it is now where {prefix}{written} is set"]


def _plan(app: object, values: dict[str, list[Any]]) -> Plan:
    settings: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for name, found in values.items():
        option = OPTIONS[name]
        if option.field:
            own[option.field] = found[-1]
        elif option.read is None:
            # (An empty one, as `--no-proxy-headers` gives, means none whatever else is given.)
            none = option.kind == REPEATED and "" in found
            settings[name] = "" if none else ",".join(found)
    listen = values.get("listen", []) + values.get("bind", [])
    if settings.get("uds"):
        listen.append(_sockets.of_path(settings.pop("uds")))
    listen += [f"fd:{number}" for number in values.get("fd", [])]
    if listen:
        settings["listen"] = ",".join(listen)
    if own.get("workers") == "auto":
        own["workers"] = len(os.sched_getaffinity(0))
    own["static"] = _mounts(values.get("static", []))
    own["reload_dirs"] = values.get("reload-dir") or [own.get("app_dir", ".")]
    own["quiet"] = settings.get("quiet", "no").lower() in YES
    _close_after_each(settings)
    _check_folders(own)
    if "uds-permissions" in values:
        settings["uds-permissions"] = values["uds-permissions"][-1]
    if "umask" in values:
        os.umask(values["umask"][-1])
        settings.setdefault("uds-permissions", _sockets.UDS_MODE & ~values["umask"][-1])
    if isinstance(app, str):
        own["title"] = app
    return Plan(app, settings=settings, **own)


def _close_after_each(settings: dict[str, Any]) -> None:
    """A keep-alive time of 0 means one request per connection, as with uvicorn and gunicorn."""
    if settings.get("timeout-keep-alive") == NEVER:
        del settings["timeout-keep-alive"]
        settings["max-requests-per-connection"] = "1"


def _mounts(given: list[tuple[str, str]]) -> dict[str, str]:
    folders: dict[str, str] = {}
    for path, folder in given:
        if path in folders:
            raise SettingError(f"--static {path}={folder}: {path} has the folder {folders[path]} "
                               f"already; leave one of them out")
        folders[path] = folder
    return folders


def _check_folders(own: dict[str, Any]) -> None:
    for path, folder in own["static"].items():
        if not os.path.isdir(folder):
            raise SettingError(
                f"--static {path}={folder}: no folder at {folder}; create it or name another one"
            )
    app_dir = own.get("app_dir", ".")
    if not os.path.isdir(app_dir):
        raise SettingError(f"--app-dir {app_dir}: no such folder; name the one your module is in")
