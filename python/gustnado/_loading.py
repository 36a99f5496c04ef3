"""Imports the application of `module:app`, and detects its interface."""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

INTERFACES = ("native", "asgi", "wsgi")


class LoadError(Exception):
    """The application cannot be loaded. Its text is one line for the user.

    Its `__cause__`, if it has one, is the application's own error.
    """


def load(name: str, folder: str = ".", factory: bool = False) -> Any:
    """Imports an application: `package.module:name`, or `package.module` for one called `app` or
    `application`. The name may have dots; with `factory` it is called for the application."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module_name, _, path = name.partition(":")
    _check_name(name, module_name, path, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise LoadError(
                f"there is no module {module_name!r} in {folder!r} nor elsewhere on sys.path; "
                "say where it is with --app-dir"
            ) from None
        raise LoadError(f"the module {module_name!r} cannot be imported") from error
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise LoadError(f"the module {module_name!r} cannot be imported") from error
    app = _attribute(module, module_name, path)
    if factory:
        try:
            return app()
        except Exception as error:
            raise LoadError(f"the factory {name!r} has failed") from error
    return app


def _check_name(name: str, module_name: str, path: str, folder: str) -> None:
    """Refuses a file in place of a module."""
    if not module_name.endswith(".py") and "/" not in module_name:
        return
    where, file = os.path.split(os.path.normpath(module_name.removesuffix(".py")))
    dotted = ".".join([*where.split("/"), file]) if where else file
    if all(part.isidentifier() for part in dotted.split(".")):
        hint = f"{dotted}:{path or 'app'}"
    elif os.path.isfile(os.path.join(folder, module_name)):
        hint = f"--app-dir {where} {file}:{path or 'app'}"
    else:
        hint = f"main:{path or 'app'}"
    raise LoadError(f"{name}: expected a module, found a file; did you mean {hint}?")


def _attribute(module: ModuleType, module_name: str, path: str) -> Any:
    if not path:
        for usual in ("app", "application"):
            if hasattr(module, usual):
                return getattr(module, usual)
        raise LoadError(
            f"the module {module_name!r} has neither `app` nor `application`; "
            f"name what it has: {module_name}:NAME"
        )
    found: Any = module
    for part in path.split("."):
        if not hasattr(found, part):
            nearest = difflib.get_close_matches(part, dir(found), 1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise LoadError(f"the module {module_name!r} has no {path!r}{hint}")
        found = getattr(found, part)
    return found


def interface_of(app: Any, asked: str = "auto") -> str:
    """Returns `native`, `asgi` or `wsgi`: as configured, or by inspection of the application."""
    from ._app import App

    is_native = isinstance(app, App)
    if asked != "auto":
        if (asked == "native") != is_native:
            kind = "a gustnado.App" if is_native else f"{type(app).__name__}"
            raise LoadError(f"--interface {asked}, but the application is {kind}; leave it out")
        if not callable(app):
            raise LoadError(_not_an_application(app))
        return asked
    if is_native:
        return "native"
    if not callable(app):
        raise LoadError(_not_an_application(app))
    called = app if inspect.isroutine(app) else app.__call__
    if inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(app):
        return "asgi"
    arguments = _arguments(called)
    if arguments == 2:
        return "wsgi"
    if arguments == 3:
        return "asgi"
    hint = "if it is one of them, say --interface"
    if arguments == 0 or inspect.isclass(app):
        hint = "if it makes one when it is called, say --factory"
    raise LoadError(
        "expected a gustnado.App, an ASGI application (scope, receive, send) or a WSGI one "
        f"(environ, start_response), found {_named(app)}; {hint}"
    )


def _named(app: Any) -> str:
    """Describes a function with its parameters, which say more than its address."""
    if not inspect.isfunction(app):
        return repr(app)
    return f"the function {app.__name__}{inspect.signature(app)}"


def _arguments(called: Callable[..., Any]) -> int | None:
    """Returns the number of required arguments, if it is known."""
    try:
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):
        return None
    needed = [
        one for one in parameters
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) and one.default is one.empty
    ]
    return len(needed)


def _not_an_application(app: object) -> str:
    return (
        f"expected an application, found {app!r} of type {type(app).__name__}; "
        "if it makes one when it is called, say --factory"
    )
