"""Root's privileges: dropped by `--user` once the sockets are open, before the application is
imported."""

from __future__ import annotations

import os

from . import _gustnado

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._plan import Plan


def drop(plan: Plan) -> None:
    """Changes this process to the user of the plan. The processes that it starts are that user's
    too."""
    user = plan.settings.get("user")
    if user:
        _gustnado.drop_privileges(user)


def warnings(plan: Plan) -> Iterator[str]:
    """Returns a line for a server that runs as root and could do without."""
    if os.geteuid() == 0 and not plan.settings.get("user"):
        yield ("it runs as root; --user NAME drops root's privileges once it listens (--quiet "
               "hides this)")
