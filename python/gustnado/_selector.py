"""asyncio's way to the engine: a selector whose `select` is a turn of the engine."""

from __future__ import annotations

import contextlib
import selectors
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from _typeshed import FileDescriptorLike

    from ._gustnado import Engine


class EngineSelector(selectors.BaseSelector):
    """Watches descriptors together with the engine's own, and serves requests while it polls.

    Before an engine is there, and after it, it is as any other.
    """

    def __init__(self) -> None:
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._map = _KeysByObject(self)
        self._plain = selectors.DefaultSelector()
        self._engine: Engine | None = None

    def drive(self, engine: Engine | None) -> None:
        """Makes each `select` a turn of this engine; with none it only polls."""
        for fd in self._keys:
            self._unwatch(fd)
        self._engine = engine
        for key in self._keys.values():
            with contextlib.suppress(OSError):
                # (One that was closed meanwhile has no events, but its key until it is removed.)
                self._watch(key.fd, key.events)

    def register(
        self, fileobj: FileDescriptorLike, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        fd = _fd_of(fileobj)
        if fd in self._keys:
            raise KeyError(f"{fileobj!r} (descriptor {fd}) is registered already")
        self._watch(fd, events)
        self._keys[fd] = key = selectors.SelectorKey(fileobj, fd, events, data)
        return key

    def modify(
        self, fileobj: FileDescriptorLike, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        key = self.get_key(fileobj)
        if events != key.events:
            if self._engine is None:
                self._plain.modify(key.fd, events)
            else:
                self._engine.rewatch(key.fd, *_wants(events))
        self._keys[key.fd] = key = key._replace(events=events, data=data)
        return key

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        key = self.get_key(fileobj)
        del self._keys[key.fd]
        self._unwatch(key.fd)
        return key

    def _watch(self, fd: int, events: int) -> None:
        if self._engine is None:
            self._plain.register(fd, events)
        else:
            self._engine.watch(fd, *_wants(events), fd)

    def _unwatch(self, fd: int) -> None:
        # (One that was closed is forgotten already.)
        with contextlib.suppress(OSError, KeyError):
            if self._engine is None:
                self._plain.unregister(fd)
            else:
                self._engine.unwatch(fd)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._engine is None:
            plain = self._plain.select(timeout)
            ready = [(found.fd, events) for found, events in plain]
        else:
            ready = [
                (fd, read * selectors.EVENT_READ | write * selectors.EVENT_WRITE)
                for fd, read, write in self._engine.turn(timeout)
            ]
        found = []
        for fd, events in ready:
            key = self._keys.get(fd)
            if key is not None and events & key.events:
                found.append((key, events & key.events))
        return found

    def get_key(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        key = self.find_key(fileobj)
        if key is None:
            raise KeyError(f"{fileobj!r} is not registered")
        return key

    def find_key(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey | None:
        """Returns the key of an object or a descriptor, if it is registered."""
        try:
            fd = _fd_of(fileobj)
        except ValueError:
            fd = -1
        if fd >= 0:
            return self._keys.get(fd)
        # It was closed after it was registered.
        return next((key for key in self._keys.values() if key.fileobj is fileobj), None)

    def get_map(self) -> Mapping[FileDescriptorLike, selectors.SelectorKey]:
        return self._map

    def close(self) -> None:
        self._keys.clear()
        self._engine = None
        self._plain.close()


class _KeysByObject(Mapping["FileDescriptorLike", selectors.SelectorKey]):
    """The keys of a selector, by descriptor and by object. asyncio asks it for each descriptor that
    it adds."""

    def __init__(self, selector: EngineSelector) -> None:
        self._selector = selector

    def __len__(self) -> int:
        return len(self._selector._keys)

    def __iter__(self) -> Iterator[FileDescriptorLike]:
        return iter(self._selector._keys)

    def __getitem__(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        return self._selector.get_key(fileobj)

    def get(self, fileobj: FileDescriptorLike, default: Any = None) -> Any:
        return self._selector.find_key(fileobj) or default


def _wants(events: int) -> tuple[bool, bool]:
    return bool(events & selectors.EVENT_READ), bool(events & selectors.EVENT_WRITE)


def _fd_of(fileobj: FileDescriptorLike) -> int:
    if isinstance(fileobj, int):
        return fileobj
    return fileobj.fileno()
