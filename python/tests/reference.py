"""Prints `docs/python/reference.md`, from the signatures and docstrings of the package:

    python tests/reference.py > ../docs/python/reference.md

Signatures are read from the sources and the stub, which have types. Documentation of the native
classes is what the built module says of itself.
"""

import ast
import inspect
from pathlib import Path

import gustnado

PACKAGE = Path(gustnado.__file__).parent
# In the order of the page. What is native has its signatures in the stub.
SOURCES = {
    "App": "_app.py", "Request": "_gustnado.pyi", "Response": "_gustnado.pyi",
    "Writer": "_gustnado.pyi", "WebSocket": "_gustnado.pyi", "stream": "_app.py",
    "events": "_events.py", "run": "_server.py", "Server": "_server.py",
    "ClientDisconnected": "_errors.py",
}
ALIASES = {
    "_Function": "_app.py", "_Fields": "_gustnado.pyi", "_Piece": "_app.py",
    "_BodyPolicy": "_app.py", "_HandlerSpec": "_gustnado.pyi", "_SocketSpec": "_gustnado.pyi",
    "_RouteOptions": "_app.py",
    "Settings": "_settings.py", "FolderSettings": "_settings.py",
}
WIDTH = 100
HEAD = """\
# Python reference

The public names of the package `gustnado`, with their types. [handlers.md](handlers.md) shows them
in use, [processes.md](processes.md) describes how servers start and end, and the settings are in
[tuning.md](../tuning.md) and in `gustnado run --help`. Made by `python/tests/reference.py`.
"""


def page():
    lines = [HEAD]
    for name, file in SOURCES.items():
        node = found(PACKAGE / file, name)
        lines.append(f"## {name}\n")
        if isinstance(node, ast.ClassDef):
            lines += of_class(node, getattr(gustnado, name))
        else:
            lines += entry(signature(node, name), getattr(gustnado, name), name)
    lines.append("## Types\n\nThese names are in signatures only: they are not to be imported.\n")
    for name, file in ALIASES.items():
        definition = alias(PACKAGE / file, name)
        lines.append(f"- `{name}`: {definition}")
    return "\n".join(lines) + "\n"


def of_class(node, thing):
    base = "" if not node.bases else f"({', '.join(map(ast.unparse, node.bases))})"
    lines = entry(constructor(node) or f"class {node.name}{base}", thing, node.name)
    for member in node.body:
        if not isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        words = [ast.unparse(one) for one in member.decorator_list]
        if member.name.startswith("_") or any(word.endswith(".setter") for word in words):
            continue
        name = f"{node.name}.{member.name}"
        lines.append(f"### {name}\n")
        lines += entry(signature(member, name), getattr(thing, member.name), name)
    return lines


def constructor(node):
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and member.name in ("__new__", "__init__"):
            member.returns = None
            return signature(member, node.name)
    return None


def signature(node, name):
    words = [ast.unparse(one) for one in node.decorator_list]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    if "property" in words:
        return name + returns.replace(" -> ", ": ")
    pieces = parameters(node.args)
    is_method = "." in name or node.name in ("__new__", "__init__")
    if is_method and "staticmethod" not in words:
        pieces = pieces[1:]
    whole = f"{name}({', '.join(pieces)}){returns}"
    if len(whole) <= WIDTH:
        return whole
    return "\n".join([f"{name}(", *(f"    {piece}," for piece in pieces), f"){returns}"])


def parameters(of):
    """Returns the parameters, each with its type and default."""
    def described(one, default):
        text = ast.unparse(one)
        return text if default is None else f"{text} = {ast.unparse(default)}"

    plain = [*of.posonlyargs, *of.args]
    defaults = [None] * (len(plain) - len(of.defaults)) + of.defaults
    pieces = [described(*pair) for pair in zip(plain, defaults)]
    if of.vararg is not None:
        pieces.append(f"*{ast.unparse(of.vararg)}")
    elif of.kwonlyargs:
        pieces.append("*")
    pieces += map(described, of.kwonlyargs, of.kw_defaults)
    if of.kwarg is not None:
        pieces.append(f"**{ast.unparse(of.kwarg)}")
    return pieces


def entry(text, thing, name):
    documentation = inspect.getdoc(thing)
    assert documentation, f"{name} has no docstring"
    return [f"```text\n{text}\n```\n", f"{documentation}\n"]


def found(path, name):
    for node in ast.parse(path.read_text()).body:
        if getattr(node, "name", None) == name:
            return node
    raise LookupError(f"{path} has no {name}")


def alias(path, name):
    """Returns the definition of a type on one line; of keyword arguments, their description."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return ast.get_docstring(node)
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and ast.unparse(targets[0]) == name:
            return f"`{ast.unparse(node.value)}`"
    raise LookupError(f"{path} has no {name}")


if __name__ == "__main__":
    print(page(), end="")
