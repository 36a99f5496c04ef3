"""The server's own loggers, and where standard error goes.

The root logger is the application's: nothing here touches it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys

from ._options import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

    from ._plan import Plan

log = logging.getLogger("gustnado")

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
OWN = "gustnado"


class _ToStderr(logging.Handler):
    """Writes to the current standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except RecursionError:
            raise  # The report of it would recurse as well.
        except Exception:
            self.handleError(record)


def set_up(plan: Plan) -> None:
    """Gives the server's loggers a handler, unless the program has given them one."""
    redirect(plan)
    own = logging.getLogger(OWN)
    if not own.handlers:
        handler = _ToStderr()
        handler.setFormatter(logging.Formatter(FORMAT))
        own.addHandler(handler)
        own.propagate = False
    if own.level == logging.NOTSET or any(type(one) is _ToStderr for one in own.handlers):
        own.setLevel(plan.log_level.upper())
    if plan.log_config:
        _configure(plan.log_config)


def keep() -> None:
    """Undoes what `logging.config` does to loggers that are not in it: without this, an
    application that configures its own logging would silence the server."""
    for name, found in list(logging.root.manager.loggerDict.items()):
        if name.partition(".")[0] == OWN and isinstance(found, logging.Logger):
            found.disabled = False


def _configure(path: str) -> None:
    """Configures logging by a file: JSON, YAML, or the format of `logging.config.fileConfig`."""
    import logging.config

    try:
        if not path.endswith((".json", ".yaml", ".yml")):
            if not os.access(path, os.R_OK):
                open(path).close()
            logging.config.fileConfig(path, disable_existing_loggers=False)
        else:
            with open(path, encoding="utf-8") as file:
                logging.config.dictConfig(_read(path, file))
    except OSError as error:
        raise SettingError(
            f"--log-config {path}: {error.strerror}; name a file that can be read") from None
    except Exception as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        why = f" ({error.__cause__})" if error.__cause__ else ""
        raise SettingError(f"--log-config {path}: {what}{why}") from None
    keep()


def _read(path: str, file: TextIO) -> Any:
    if path.endswith(".json"):
        return json.load(file)
    try:
        import yaml
    except ImportError:
        raise ValueError(
            "PyYAML is not installed; pip install pyyaml, or write it as JSON") from None
    return yaml.safe_load(file)


def redirect(plan: Plan) -> None:
    """Redirects standard error, and with `capture_output` standard output, to a plan's file.

    Raises SettingError where it cannot be opened."""
    if plan.error_log in ("", "-"):
        return
    for stream in sys.stderr, sys.stdout:
        with contextlib.suppress(OSError):
            # (What cannot be written is no reason to keep the file.)
            stream.flush()
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        fd = os.open(plan.error_log, flags, 0o666)
    except OSError as error:
        raise SettingError(
            f"--error-log {plan.error_log}: {error.strerror}; name a file in a folder that you "
            "may write to, or -"
        ) from None
    os.dup2(fd, 2)
    if plan.capture_output:
        os.dup2(fd, 1)
    os.close(fd)


def reopen(plan: Plan) -> None:
    """USR1: reopens a plan's file after a rotation, if that is possible."""
    try:
        redirect(plan)
    except SettingError as error:
        log.error("USR1: %s; the old file is written on", error)
