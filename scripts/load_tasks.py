"""What a virtual client knows of its tasks: what it did to them, so what a right server must show of them.

One request at a time changes a piece of work, and nothing shows it while that is on its way: the server serves what
only looks in the order in which it came, so whatever was acknowledged before must show, and nothing that came later.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from modes_actor.sessions.model import TaskState
from modes_actor.surface.mode_results import TaskDetails

MOST_TASKS: Final = 5

Node = tuple[str, str, str, str, str | None, int]


class Shown(Struct, frozen=True):
    """What `get_task_info` and `task://` have to show of a task, times apart."""

    session_id: str
    task_id: str
    mode: str
    state: TaskState
    parent: str | None
    has_ended: bool
    modes: list[tuple[str, str | None]]
    messages: list[tuple[str, str]] | None
    hierarchy: list[Node] | None
    """By session: among themselves, children may come in any order."""


def shown_in(details: TaskDetails) -> Shown:
    nodes = details.hierarchy
    return Shown(
        session_id=details.session_id,
        task_id=details.task_id,
        mode=details.mode_slug,
        state=details.state,
        parent=details.parent_session_id,
        has_ended=details.completed_at is not None,
        modes=[(each.mode, each.reason) for each in details.mode_history],
        messages=None if details.messages is None else [(each.role, each.content) for each in details.messages],
        hierarchy=None
        if nodes is None
        else sorted(
            (each.session_id, each.task_id, each.mode_slug, each.state, each.parent_session_id, each.depth)
            for each in nodes
        ),
    )


class Task:
    """A task of a client. `modes` ends with the one asked for last, acknowledged or not."""

    __slots__ = ("depth", "messages", "modes", "parent", "session_id", "state", "task_id", "used")

    def __init__(
        self, session_id: str, task_id: str, mode: str, message: str, parent: "Task | None", now: float
    ) -> None:
        self.session_id, self.task_id, self.parent = session_id, task_id, parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.modes: list[tuple[str, str | None]] = [(mode, None)]
        self.messages = [("user", message)]
        self.state: TaskState = "active"
        self.used = now
        """When the last request was sent that was served and counts as a use: it lives at least from then on."""

    @property
    def mode(self) -> str:
        return self.modes[-1][0]

    @property
    def above(self) -> "Iterator[Task]":
        """It, and those above it."""
        task: Task | None = self
        while task is not None:
            yield task
            task = task.parent


class Subscription:
    """A client that wants to hear of a task."""

    __slots__ = ("is_acknowledged", "is_awaited", "task", "uri")

    def __init__(self, task: Task, *, is_acknowledged: bool) -> None:
        self.task = task
        self.uri = f"task://{task.session_id}"
        self.is_acknowledged = is_acknowledged
        self.is_awaited = False
        """Something has changed that was not told yet."""


class Work:
    """A task and all below it, the first one first."""

    __slots__ = ("begun", "is_changing", "session_ids", "subscription", "tasks", "waiting")

    def __init__(self, first: Task, now: float) -> None:
        self.tasks = [first]
        self.session_ids = {first.session_id}
        self.begun = now
        self.is_changing = False
        self.waiting = 0
        """Requests about it that are on their way."""
        self.subscription: Subscription | None = None

    def add(self, task: Task) -> None:
        self.tasks.append(task)
        self.session_ids.add(task.session_id)

    @property
    def active(self) -> list[Task]:
        return [task for task in self.tasks if task.state == "active"]

    @property
    def is_done(self) -> bool:
        return self.tasks[0].state != "active"

    def active_below(self, above: Task) -> list[Task]:
        return [task for task in self.active if task is not above and above in task.above]

    def active_children(self, parent: Task) -> list[Task]:
        return [task for task in self.active if task.parent is parent]

    def oldest_use(self) -> float:
        return min(task.used for task in self.tasks)

    def shown(self, task: Task, *, messages: bool, hierarchy: bool) -> Shown:
        nodes: list[Node] = [
            (
                each.session_id,
                each.task_id,
                each.mode,
                each.state,
                each.parent.session_id if each.parent else None,
                each.depth,
            )
            for each in self.tasks
        ]
        return Shown(
            session_id=task.session_id,
            task_id=task.task_id,
            mode=task.mode,
            state=task.state,
            parent=task.parent.session_id if task.parent else None,
            has_ended=task.state != "active",
            modes=list(task.modes),
            messages=list(task.messages) if messages else None,
            hierarchy=sorted(nodes) if hierarchy else None,
        )

    def changes(self, task: Task) -> None:
        """A change of that task is sent: who subscribed to it or to one above it must hear of it."""
        self.is_changing = True
        if self.subscription is not None and self.subscription.task in task.above:
            self.subscription.is_awaited = True
