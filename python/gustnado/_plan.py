"""What is to be served, and how: the same for all ways to say it."""

import dataclasses
import json

GRACE_SECONDS = 10.0
LIFESPAN_SECONDS = 30.0
# As many as the engine has threads at most. (Each is a process with memory of its own.)
WORKERS_MAX = 1024
# Settings of sockets that are open already.
_OF_SOCKETS = ("host", "port", "uds", "uds-permissions", "backlog")


@dataclasses.dataclass
class Plan:
    """It can be handed to another process, but for an application that is an object."""

    # An application, or `module:name`.
    app: object
    interface: str = "auto"
    factory: bool = False
    app_dir: str = "."
    # The engine's settings, by the names of the command line.
    settings: dict = dataclasses.field(default_factory=dict)
    # Folders by path, which the engine serves.
    static: dict = dataclasses.field(default_factory=dict)
    workers: int = 1
    # The application is imported once, before workers begin as copies of the process that did.
    preload: bool = False
    # Threads that call a WSGI application; with one, the engine's own does.
    threads: int = 1
    waiting_max: int = 1024
    loop: str = "auto"
    lifespan: str = "auto"
    root_path: str = ""
    grace: float = GRACE_SECONDS
    # Seconds that an ASGI application's shutdown may take, once the answers have ended.
    lifespan_timeout: float = LIFESPAN_SECONDS
    # Seconds that a handler may hold the engine's thread without being named in the log; 0: any.
    slow_handler: float = 1.0
    # Seconds for which one of Python's threads may go on before others are let in.
    switch_interval: float = 0.0005
    max_requests: int = 0
    max_requests_jitter: int = 0
    max_memory: int = 0
    log_level: str = "info"
    reload: bool = False
    reload_dirs: list = dataclasses.field(default_factory=list)
    # Of a worker: the file in memory with all workers' loads, and its place there.
    shared_load: tuple | None = None

    def __post_init__(self):
        check_workers(self.workers)
        # Whole segments: `/app/` and `app` mean `/app`.
        segments = self.root_path.strip("/")
        self.root_path = f"/{segments}" if segments else ""

    def to_json(self):
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text):
        return cls(**json.loads(text))

    def on(self, listening):
        """The same on sockets that are open already."""
        settings = {name: value for name, value in self.settings.items()
                    if name not in _OF_SOCKETS}
        return dataclasses.replace(self, settings={**settings, "listen": listening.numbers()})

    def engine_settings(self):
        """As the engine takes them: pairs of text. A process has one worker."""
        settings = {**self.settings, "workers": "1"}
        # (The engine takes whole numbers.)
        settings["timeout-graceful-shutdown"] = f"{round(self.grace * 1000)}ms"
        return [(name, text_of(value)) for name, value in settings.items()]


def check_workers(count):
    """Raises ValueError for a number of worker processes that there cannot be."""
    if not 1 <= count <= WORKERS_MAX:
        raise ValueError(f"expected 1 to {WORKERS_MAX} worker processes, found {count}")


def text_of(value):
    """A setting's value as a person would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def settings_of(given):
    """Keyword arguments as settings: `timeout_keep_alive="30s"` is `--keep-alive 30s`."""
    return {name.replace("_", "-"): value for name, value in given.items() if value is not None}
