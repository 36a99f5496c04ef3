from collections.abc import AsyncIterable, Callable, Iterable
from os import PathLike
from typing import Literal, TypeVar, overload

from typing_extensions import Unpack

from ._gustnado import _Fields, Response
from ._settings import Settings

# Any function may be a handler: it takes the request, named parts of the path, both or nothing.
_Function = TypeVar("_Function", bound=Callable[..., object])
_BodyPolicy = Literal["stream", "memory", "spool"]
_Piece = str | bytes | bytearray | memoryview

class App:
    def __init__(self) -> None: ...
    def route(
        self, path: str, method: str | None = None, *, merge_slashes: bool = True,
        exempt: bool = False, limit_concurrency: int | None = None,
        body: _BodyPolicy | None = None,
    ) -> Callable[[_Function], _Function]: ...
    def get(
        self, path: str, *, merge_slashes: bool = True,
        exempt: bool = False, limit_concurrency: int | None = None,
        body: _BodyPolicy | None = None,
    ) -> Callable[[_Function], _Function]: ...
    def post(
        self, path: str, *, merge_slashes: bool = True,
        exempt: bool = False, limit_concurrency: int | None = None,
        body: _BodyPolicy | None = None,
    ) -> Callable[[_Function], _Function]: ...
    def put(
        self, path: str, *, merge_slashes: bool = True,
        exempt: bool = False, limit_concurrency: int | None = None,
        body: _BodyPolicy | None = None,
    ) -> Callable[[_Function], _Function]: ...
    def patch(
        self, path: str, *, merge_slashes: bool = True,
        exempt: bool = False, limit_concurrency: int | None = None,
        body: _BodyPolicy | None = None,
    ) -> Callable[[_Function], _Function]: ...
    def delete(
        self, path: str, *, merge_slashes: bool = True,
        exempt: bool = False, limit_concurrency: int | None = None,
        body: _BodyPolicy | None = None,
    ) -> Callable[[_Function], _Function]: ...
    def files(self, path: str, folder: str | PathLike[str]) -> App: ...
    @overload
    def before(self, function: _Function, *, under: str = "/") -> _Function: ...
    @overload
    def before(
        self, function: None = None, *, under: str = "/"
    ) -> Callable[[_Function], _Function]: ...
    @overload
    def after(self, function: _Function, *, under: str = "/") -> _Function: ...
    @overload
    def after(
        self, function: None = None, *, under: str = "/"
    ) -> Callable[[_Function], _Function]: ...
    def handlers(
        self,
    ) -> list[
        tuple[str | None, str, Callable[..., object], bool, list[str], bool, bool, int,
              str | None, bool]
    ]: ...
    def run(self, **settings: Unpack[Settings]) -> None: ...
    def stop(self) -> None: ...

def stream(
    pieces: Iterable[_Piece] | AsyncIterable[_Piece],
    *,
    status: int = 200,
    headers: _Fields | None = None,
    content_type: str | None = None,
) -> Response: ...
