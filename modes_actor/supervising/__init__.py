"""Between a client and a server that is kept alive: it is pinged, replaced when it is dead, and the client stays.

Read `supervisor.py` first; `relay.py` says what becomes of each message, `pulse.py` when a server counts as dead.
"""

from modes_actor.supervising.child import CannotStart, start_process
from modes_actor.supervising.status import Status, StatusFile, StatusUnusable, read_status
from modes_actor.supervising.supervisor import Supervisor
from modes_actor.supervising.timing import Timing

__all__ = [
    "CannotStart",
    "Status",
    "StatusFile",
    "StatusUnusable",
    "Supervisor",
    "Timing",
    "read_status",
    "start_process",
]
