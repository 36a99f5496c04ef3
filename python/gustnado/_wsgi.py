"""Objects in the environment of WSGI applications."""

from __future__ import annotations

import logging

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from typing_extensions import Self

log = logging.getLogger("gustnado.wsgi")


class FileWrapper:
    """`wsgi.file_wrapper`: the kernel sends wrapped files."""

    close: Callable[[], object]

    def __init__(self, filelike: Any, block_size: int = 65536) -> None:
        self.filelike, self.block_size = filelike, block_size
        if hasattr(filelike, "close"):
            self.close = filelike.close

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        block = self.filelike.read(self.block_size)
        if not block:
            raise StopIteration
        return block


class Errors:
    """`wsgi.errors`: lines go to the log."""

    def __init__(self) -> None:
        self._begun = ""

    def write(self, text: str) -> None:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            log.error("%s", line)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if self._begun:
            log.error("%s", self._begun)
            self._begun = ""


_OF_EACH = (
    "REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "REQUEST_URI", "RAW_URI", "SERVER_PROTOCOL",
    "REMOTE_ADDR", "REMOTE_PORT", "wsgi.input",
)


def template(
    host: str, port: int, scheme: str, root_path: str, threads: int, processes: int
) -> dict[str, Any]:
    """Returns the common part of all environments.

    What each request has is in it already, so that copies are large enough from the start.
    """
    return {
        **dict.fromkeys(_OF_EACH, ""),
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_SOFTWARE": "gustnado",
        "SCRIPT_NAME": root_path,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scheme,
        "wsgi.errors": Errors(),
        "wsgi.multithread": threads > 1,
        "wsgi.multiprocess": processes > 1,
        "wsgi.run_once": False,
        "wsgi.file_wrapper": FileWrapper,
        "wsgi.input_terminated": True,
    }
