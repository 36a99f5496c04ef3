from twisted.internet.epollreactor import EPollReactor

__all__ = ["GustnadoReactor", "install"]

class GustnadoReactor(EPollReactor):
    """Every interface that `EPollReactor` provides, on the engine."""
    def __init__(self) -> None: ...

def install() -> GustnadoReactor:
    """Makes it the reactor of this process, and returns it. To be called before
    `twisted.internet.reactor` is imported anywhere.

    Raises `ReactorAlreadyInstalledError` where that is too late."""
