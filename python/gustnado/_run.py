"""`gustnado run module:app`: what can be said on the command line, and what becomes of it."""

import argparse
import difflib
import logging
import os
import sys

from . import _gustnado, _loading, _loops, _sockets, _threads
from ._lifespan import LifespanError
from ._plan import GRACE_SECONDS, LIFESPAN_SECONDS, Plan, check_workers
from ._process import Process

log = logging.getLogger("gustnado")

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def main(arguments):
    try:
        plan = plan_of(arguments)
    except _loading.LoadError as error:
        return _refused(error)
    _set_up_log(plan)
    return serve(plan)


def serve(plan):
    """Serves until it is ended. Returns the exit code."""
    try:
        if (plan.workers > 1 or plan.reload or plan.max_requests or plan.max_memory
                or plan.preload):
            from ._supervisor import Supervisor

            return Supervisor(plan).run()
        process = Process(plan, lambda kind, told: _told(plan, kind, told))
        code = process.run()
        if process.successor is not None:
            from . import _successor

            return _successor.supervise(process)
        return code
    except (_loading.LoadError, LifespanError, OSError, ValueError) as error:
        return _refused(error)


def _told(plan, kind, told):
    if kind == "ready":
        say_start(plan, told["names"], told)


def say_start(plan, names, told):
    """Where is served, and by how many processes and threads."""
    count = f"{plan.workers} process{'es' if plan.workers > 1 else ''}"
    for name in names:
        say(f"gustnado serves {name} ({told['how']}, {count})")
    say(f"gustnado: {_threads.sentence(plan, told['interface'])}")
    for doubt in _threads.doubts(plan, told["interface"]):
        say(f"gustnado: note: {doubt}")


def say(line):
    print(line, file=sys.stderr, flush=True)


def _refused(error):
    """One line, with the application's own error before it."""
    cause = error.__cause__
    if cause is not None:
        import traceback

        trace = cause.__traceback__
        # Where it was imported from is of no interest.
        while trace is not None and _is_ours(trace):
            trace = trace.tb_next
        traceback.print_exception(type(cause), cause, trace)
    say(f"gustnado: {error}")
    return 2 if isinstance(error, ValueError) else 1


def _is_ours(trace):
    name = trace.tb_frame.f_code.co_filename
    return "importlib" in name or os.path.dirname(__file__) in name


def _set_up_log(plan):
    logging.basicConfig(
        level=getattr(logging, plan.log_level.upper()),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )


def plan_of(arguments):
    parser = _parser()
    given, rest = parser.parse_known_args(_joined(arguments))
    if rest:
        parser.error(f"unrecognized arguments: {rest[0]}")
    settings = _engine_settings(given)
    listen = list(given.bind or [])
    if given.uds:
        listen.append(f"unix:{given.uds}")
    if given.fd is not None:
        listen.append(f"fd:{given.fd}")
    if listen:
        settings["listen"] = ",".join(listen)
    for name in ("host", "port", "uds_permissions"):
        if getattr(given, name) is not None:
            settings[name.replace("_", "-")] = getattr(given, name)
    workers = given.workers
    if workers == "auto":
        workers = len(os.sched_getaffinity(0))
    plan = Plan(
        app=given.app, interface=given.interface, factory=given.factory, app_dir=given.app_dir,
        settings=settings, static=dict(given.static or []), workers=int(workers),
        threads=given.threads, waiting_max=given.backlog_of_threads, lifespan=given.lifespan,
        lifespan_timeout=given.lifespan_timeout, preload=given.preload,
        root_path=given.root_path, grace=given.timeout_graceful_shutdown,
        loop=given.loop, slow_handler=given.slow_handler,
        switch_interval=given.switch_interval, max_requests=given.max_requests,
        max_requests_jitter=given.max_requests_jitter, max_memory=given.max_memory,
        reload=given.reload, reload_dirs=given.reload_dir or [given.app_dir],
        log_level=given.log_level,
    )
    return plan


def _parser():
    parser = _Parser(
        prog="gustnado run",
        description="Serve a Python application: a gustnado.App, or one by ASGI or WSGI.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("app", help="module:name, or module for one called app or application")
    add("--interface", choices=("auto", *_loading.INTERFACES), default="auto",
        help="what kind of application it is [what it looks like]")
    add("--factory", action="store_true", help="the name is a function that makes the application")
    add("--app-dir", default=".", metavar="DIR", help="where its module is looked for first [.]")
    add("--host", help="name or address to listen on [127.0.0.1]")
    add("-p", "--port", type=int, help="port to listen on; 0 takes a free one [8080]")
    add("--bind", action="append", metavar="ADDR",
        help="where to listen: 127.0.0.1:80, unix:PATH or fd:3; may be repeated")
    add("--uds", metavar="PATH", help="Unix socket to listen on")
    add("--uds-permissions", type=_mode, metavar="MODE",
        help="who may connect to a Unix socket, in octal [666: everyone who reaches it]")
    add("--fd", type=int, metavar="N", help="descriptor that listens already")
    add("-w", "--workers", default="1", type=_workers, metavar="N",
        help="worker processes, or auto for one on each CPU [1]")
    add("--preload", action="store_true",
        help="import the application once and have workers begin as copies, which share its memory; "
        "new code then takes a restart")
    add("--threads", type=_positive, default=1, metavar="N",
        help="threads that call a WSGI application in each process; one is the engine's own, "
        "which serves nobody else meanwhile [1]")
    add("--backlog-of-threads", type=_positive, default=1024, metavar="N",
        help="requests that may wait for a thread; more get 503 [1024]")
    add("--loop", choices=_loops.NAMES, default="auto",
        help="whose loop coroutines run on; auto is uvloop where it is installed [auto]")
    add("--slow-handler", type=_seconds, default=1.0, metavar="TIME",
        help="a handler that holds the engine's thread for longer is named in the log; 0: none "
        "[1s]")
    add("--lifespan", choices=("auto", "on", "off"), default="auto",
        help="whether an ASGI application has a lifespan [auto]")
    add("--lifespan-timeout", type=_seconds, default=LIFESPAN_SECONDS, metavar="TIME",
        help="how long its shutdown may take, once answers have ended [30s]")
    add("--root-path", default="", metavar="PATH", help="what a proxy has taken off the paths")
    add("--static", action="append", type=_mount, metavar="/PATH=DIR",
        help="a folder that the engine serves, without Python; may be repeated")
    add("--timeout-graceful-shutdown", type=_seconds, default=GRACE_SECONDS, metavar="TIME",
        help="how long answers may take once the server ends [10s]")
    add("--max-requests", type=int, default=0, metavar="N",
        help="a process is replaced after so many [never]")
    add("--max-requests-jitter", type=int, default=0, metavar="N",
        help="and up to so many more, so that not all are replaced at once [0]")
    add("--max-memory", type=_bytes, default=0, metavar="SIZE",
        help="a process is replaced when it has more [never]")
    add("--switch-interval", type=float, default=0.0005, metavar="SECONDS",
        help="for how long one of Python's threads may go on before others are let in [0.0005]")
    add("--reload", action="store_true", help="start anew when a source file changes; to develop")
    add("--reload-dir", action="append", metavar="DIR", help="where to look [--app-dir]")
    add("--log-level", choices=("debug", "info", "warning", "error"), default="info",
        help="what is written to standard error [info]")
    _add_engine_settings(parser)
    return parser


def _add_engine_settings(parser):
    """A flag for each of the engine's settings that has none here."""
    own = {word for action in parser._actions for word in action.option_strings}
    group = parser.add_argument_group("settings of the engine")
    for name, doc, _is_switch in _gustnado.settings():
        if f"--{name}" not in own:
            group.add_argument(f"--{name}", dest=f"engine {name}", metavar="VALUE",
                               help=doc.replace("%", "%%"))


def _engine_settings(given):
    named = vars(given).items()
    return {name.removeprefix("engine "): value for name, value in named
            if name.startswith("engine ") and value is not None}


def _joined(arguments):
    """Switches with their values, which may stand alone, behind a blank or behind `=`."""
    switches = {f"--{name}" for name, _doc, is_switch in _gustnado.settings() if is_switch}
    joined = []
    for argument in arguments:
        if joined and joined[-1] in switches:
            if argument in ("true", "false", "yes", "no", "on", "off", "1", "0"):
                joined[-1] += f"={argument}"
                continue
            joined[-1] += "=true"
        joined.append(argument)
    if joined and joined[-1] in switches:
        joined[-1] += "=true"
    return joined


class _Parser(argparse.ArgumentParser):
    """One that names the nearest flag."""

    def error(self, message):
        if message.startswith("unrecognized arguments: "):
            name = message.split()[2].partition("=")[0]
            options = [word for action in self._actions for word in action.option_strings]
            nearest = difflib.get_close_matches(name, options, 1)
            hint = f"; did you mean {nearest[0]}?" if nearest else "; see gustnado run --help"
            message = f"there is no {name}{hint}"
        say(f"gustnado run: {message}")
        raise SystemExit(2)


def _workers(text):
    if text == "auto":
        return text
    try:
        check_workers(int(text))
    except ValueError as error:
        found = str(error) if text.lstrip("+-").isdigit() else f"expected a number, found {text!r}"
        raise argparse.ArgumentTypeError(found) from None
    return int(text)


def _positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected 1 at least")
    return number


def _mode(text):
    try:
        return _sockets.mode_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _mount(text):
    path, equals, folder = text.partition("=")
    if not equals or not path.startswith("/"):
        raise argparse.ArgumentTypeError(f"expected /path=folder, found {text!r}")
    return path, folder


def _seconds(text):
    for unit, factor in (("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("", 1)):
        if text.endswith(unit):
            try:
                return float(text.removesuffix(unit)) * factor
            except ValueError:
                break
    raise argparse.ArgumentTypeError(f"expected a time such as 10s or 500ms, found {text!r}")


def _bytes(text):
    lower = text.lower()
    unit = lower[-1:] if lower[-1:] in UNITS else ""
    try:
        return int(lower.removesuffix(unit)) * UNITS[unit]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a size such as 300m, found {text!r}") from None
