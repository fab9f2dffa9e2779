"""What clients ask of modes and tasks, in which proportion, and when an answer is right."""

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec
from load_answers import (
    FILE_RESTRICTED,
    NEWS,
    OWN,
    TOOL_RESTRICTED,
    TYPED,
    Message,
    ToolAnswer,
    Wrong,
    metadata_of,
    only,
    same,
)
from load_client import Ask, Mix, Sent, VirtualClient
from load_lists import (
    complete_slug,
    discover,
    get_mode_info,
    list_modes,
    lists,
    prompt,
    read_mode,
    set_level,
    sound,
)
from load_project import CASES, MODES, Case
from load_refusals import provoke
from load_tasks import MOST_TASKS, Shown, Subscription, Task, Work, shown_in

from modes_actor.sessions.model import FinalState
from modes_actor.surface.mode_results import (
    ModeSwitchedResult,
    TaskCompletedResult,
    TaskCreated,
    TaskDetails,
    Validation,
)
from modes_actor.wire.base import EmptyResult
from modes_actor.wire.completion import CompleteResult
from modes_actor.wire.prompts import GetPromptResult
from modes_actor.wire.resources import ReadResourceResult

MOST_WORKS: Final = 2
MOST_LISTENS: Final = 48
"""Of one process, which takes 64."""
_details: Final = msgspec.json.Decoder(TaskDetails)


# Tasks and what changes them.


def create_task(client: VirtualClient) -> None:
    if len(client.works) >= MOST_WORKS:
        validate(client)
        return
    _ask_for_task(client, f"Task of client {client.number} at {client.now:.6f}", client.begin)


def create_subtask(client: VirtualClient) -> None:
    work = client.changeable_work()
    parents = work.active if work else []
    if work is None or not parents or len(work.tasks) >= MOST_TASKS:
        create_task(client)
        return
    parent = client.one_of(parents)

    def add(task: Task) -> None:
        client.own(task.session_id)
        work.add(task)

    _ask_for_task(client, f"Part of {parent.task_id}", add, work, parent)
    work.changes(parent)


def _ask_for_task(
    client: VirtualClient,
    message: str,
    take: Callable[[Task], object],
    work: Work | None = None,
    parent: Task | None = None,
) -> Sent:
    mode, asked = client.one_of(MODES), client.now
    arguments = {"mode_slug": mode, "initial_message": message}
    if parent is not None:
        arguments["parent_session_id"] = parent.session_id

    def check(answer: Message) -> None:
        if work is not None:
            work.is_changing = False
        result = client.reading.result(answer, ToolAnswer[TaskCreated])
        told = result.structured_content
        ids = {"session_id": told.session_id, "task_id": told.task_id}
        same(OWN, "the new task", told, TaskCreated(**ids, mode_slug=mode, state="active"))
        same(TYPED, "`metadata`", metadata_of(result), {**ids, "mode_slug": mode})
        client.given = told.session_id
        take(Task(told.session_id, told.task_id, mode, message, parent, asked))

    return client.call("create_task", arguments, check, work, parent)


def switch_mode(client: VirtualClient) -> None:
    work = client.changeable_work()
    active = work.active if work else []
    if work is None or not active:
        create_task(client)
        return
    task = client.one_of(active)
    old, new = task.mode, client.one_of(MODES)
    reason = f"client {client.number} needs it" if client.random.random() < 0.7 else None
    arguments = {"session_id": task.session_id, "new_mode_slug": new, "reason": reason}

    def check(answer: Message) -> None:
        work.is_changing = False
        result = client.reading.result(answer, ToolAnswer[ModeSwitchedResult])
        told = result.structured_content
        due = ModeSwitchedResult(
            session_id=task.session_id, old_mode=old, new_mode=new, reason=reason, tool_groups=told.tool_groups
        )
        same(OWN, "the switch", told, due)
        same(OWN, "`metadata`", metadata_of(result), {"old_mode": old, "new_mode": new})

    client.call("switch_mode", arguments, check, work, task)
    work.changes(task)
    task.modes.append((new, reason))


def complete_task(client: VirtualClient) -> None:
    work = client.changeable_work()
    active = work.active if work else []
    if work is None or not active:
        create_task(client)
        return
    task = client.one_of(active)
    status: FinalState = client.one_of(("completed", "completed", "failed", "cancelled"))
    words = f"Done by client {client.number}" if client.random.random() < 0.7 else None

    def check(answer: Message) -> None:
        work.is_changing = False
        told = client.reading.result(answer, ToolAnswer[TaskCompletedResult]).structured_content
        below = work.active_below(task) if status == "cancelled" else []
        for each in (task, *below):
            each.state = status
        if words is not None:
            task.messages.append(("assistant", words))
        if not client.all_live(work):  # those that have expired are not counted, and which those are is not known
            return client.lose(work)
        due = TaskCompletedResult(
            session_id=task.session_id,
            task_id=task.task_id,
            status=status,
            result=words,
            cancelled_sessions=sorted(each.session_id for each in below),
            open_subtasks=len(work.active_children(task)),
        )
        told.cancelled_sessions.sort()
        same(OWN, "the end of the task", told, due)

    client.call("complete_task", {"session_id": task.session_id, "status": status, "result": words}, check, work, task)
    work.changes(task)


# Looking at tasks.


def validate(client: VirtualClient) -> None:
    work = client.some_work()
    if work is None:
        create_task(client)
        return
    task, case = client.one_of(work.tasks), client.one_of(CASES)
    enforce = client.random.random() < 0.2
    arguments: dict[str, object] = {"session_id": task.session_id, "tool_name": case.tool}
    if case.path is not None:
        arguments["file_path"] = case.path
    if enforce:
        arguments["enforce"] = True
    # What is sent after a switch is decided in the mode after it; a switch that is sent later may come first.
    check = partial(_check_validation, client, task, len(task.modes) - 1, case, enforce)
    client.call("validate_tool_use", arguments, check, work, task)


def _check_validation(
    client: VirtualClient, task: Task, since: int, case: Case, enforce: bool, answer: Message
) -> None:
    modes = [mode for mode, _ in task.modes[since:]]
    if enforce and len(modes) == 1 and modes[0] not in case.allowed:
        client.reading.expect(answer, FILE_RESTRICTED if modes[0] in case.wrong_file else TOOL_RESTRICTED)
        return
    if enforce and len(modes) > 1 and client.reading.refusal(answer) is not None:
        return
    result = client.reading.result(answer, ToolAnswer[Validation])
    told = result.structured_content
    if told.mode not in modes or f"Session: {task.session_id}\n" not in result.text:
        raise Wrong(OWN, f"it was decided in {told.mode} mode, and the task is in {' or '.join(modes)}")
    allowed = told.mode in case.allowed
    same(OWN, "the decision", (told.allowed, told.tool_name), (allowed, case.tool))
    if not allowed:
        same(OWN, "the modes that allow it", frozenset(told.allowed_in or ()), case.allowed)
    metadata = metadata_of(result)
    same(TYPED, "`metadata`", (metadata.get("allowed"), metadata.get("mode")), (told.allowed, told.mode))


def get_task_info(client: VirtualClient) -> None:
    work = client.changeable_work()
    if work is None:
        validate(client)
        return
    task = client.one_of(work.tasks)
    messages, hierarchy = client.random.random() < 0.5, client.random.random() < 0.5
    due = work.shown(task, messages=messages, hierarchy=hierarchy)
    arguments = {"session_id": task.session_id, "include_messages": messages, "include_hierarchy": hierarchy}

    def check(answer: Message) -> None:
        _check_shown(client, work, client.reading.result(answer, ToolAnswer[TaskDetails]).structured_content, due)

    client.call("get_task_info", arguments, check, work, task)


def read_task(client: VirtualClient) -> None:
    work = client.changeable_work()
    if work is None:
        read_mode(client)
        return
    task = client.one_of(work.tasks)
    due, uri = work.shown(task, messages=True, hierarchy=True), f"task://{task.session_id}"

    def check(answer: Message) -> None:
        result = client.reading.result(answer, ReadResourceResult)
        contents = only(result.contents)
        same(OWN, "what was read", contents.uri, uri)
        try:
            details = _details.decode(contents.text or "")
        except msgspec.MsgspecError as error:
            raise Wrong(TYPED, f"the resource is no task: {error}") from error
        _check_shown(client, work, details, due)

    client.ask("resources/read", "resources/read", {"uri": uri}, check, work, task)


def _check_shown(client: VirtualClient, work: Work, details: TaskDetails, due: Shown) -> None:
    found = shown_in(details)
    if found.hierarchy is not None and not client.all_live(work):  # what has expired is no longer shown
        found, due = msgspec.structs.replace(found, hierarchy=None), msgspec.structs.replace(due, hierarchy=None)
    same(OWN, "the task", found, due)


def hand_over(client: VirtualClient) -> None:
    work = client.changeable_work()
    if work is None:
        prompt(client)
        return
    task, mode = client.one_of(work.tasks), client.one_of(MODES)
    opening = f"You take over a task from {task.mode} mode, in {mode} mode"
    facts = f"Session: {task.session_id}\nTask: {task.task_id}\nState: {task.state}"

    def check(answer: Message) -> None:
        message = only(client.reading.result(answer, GetPromptResult).messages)
        text = getattr(message.content, "text", "")
        if not text.startswith(opening) or facts not in text:
            raise Wrong(OWN, f"the hand-over does not begin with {opening!r} and tell {facts!r}")

    arguments = {"session_id": task.session_id, "to_mode": mode}
    client.ask("prompts/get", "prompts/get", {"name": "handoff", "arguments": arguments}, check, work, task)


def complete_session(client: VirtualClient) -> None:
    """The beginning of a session's id, long enough that only one can be meant."""
    work = client.some_work()
    if work is None:
        complete_slug(client)
        return
    task = work.tasks[0]

    def check(answer: Message) -> None:
        values = client.reading.result(answer, CompleteResult).completion.values
        if values or not client.is_stale(task):
            same(OWN, "the completed session", values, [task.session_id])

    params = {
        "ref": {"type": "ref/resource", "uri": "task://{session_id}"},
        "argument": {"name": "session_id", "value": task.session_id[:25]},
    }
    sent = client.ask("completion/complete", "completion/complete", params, check, work)
    sent.task = None  # it is no use of the session


# Hearing of tasks.


def follow(client: VirtualClient) -> None:
    """Want to hear of a task; or, if there is one already, no longer."""
    followed = next((work for work in client.works if work.subscription is not None), None)
    if followed is not None and followed.subscription is not None:
        if not followed.subscription.is_acknowledged or followed.subscription.is_awaited:
            validate(client)
        elif client.is_stateless:
            _stop_listening(client, followed)
        else:
            _unsubscribe(client, followed, followed.subscription)
        return
    work = client.changeable_work()
    if work is None or (client.is_stateless and len(client.line.listens) >= MOST_LISTENS):
        list_modes(client)
    elif client.is_stateless:
        subscription = work.subscription = Subscription(work.tasks[0], is_acknowledged=False)
        wanted = {"notifications": {"resourceSubscriptions": [subscription.uri]}}
        sent = client.ask("subscriptions/listen", "subscriptions/listen", wanted, _never)
        client.listening = sent.id
        client.line.listens[sent.id] = subscription
    else:
        subscription = work.subscription = Subscription(work.tasks[0], is_acknowledged=True)
        client.line.subscribed[subscription.uri] = subscription
        client.ask("resources/subscribe", "resources/subscribe", {"uri": subscription.uri}, partial(_empty, client))


def _unsubscribe(client: VirtualClient, work: Work, subscription: Subscription) -> None:
    def check(answer: Message) -> None:
        _empty(client, answer)
        if client.line.subscribed.get(subscription.uri) is subscription:  # else it has subscribed again
            del client.line.subscribed[subscription.uri]

    work.subscription = None
    client.ask("resources/unsubscribe", "resources/unsubscribe", {"uri": subscription.uri}, check)


def _stop_listening(client: VirtualClient, work: Work) -> None:
    assert client.listening is not None
    client.cancel(client.listening)
    client.line.pending[client.listening].is_cancelled = True
    work.subscription = None
    sent = sound(client)
    sent.retires, client.listening = client.listening, None


def _empty(client: VirtualClient, answer: Message) -> None:
    client.reading.result(answer, EmptyResult)


def _never(answer: Message) -> None:
    raise Wrong(NEWS, "a stream of changes ended by itself")


# Cancelling.


def abandon(client: VirtualClient) -> None:
    """Ask, and no longer want the answer: at once, or when something else has been answered."""
    if client.abandoned is not None:
        _cancel(client, client.abandoned)
        return

    def leave(task: Task) -> None:
        client.left_alone.append((task.session_id, client.now))

    sent = _ask_for_task(client, "Nobody will wait for this", leave)
    sent.is_turn = False
    client.abandoned = sent.id
    if client.random.random() < 0.5:
        _cancel(client, sent.id)
    else:
        client.next(abandon)
        list_modes(client)


def _cancel(client: VirtualClient, request_id: str | int) -> None:
    client.abandoned = None
    client.known.cancelled += 1
    abandoned = client.line.pending.get(request_id)
    if abandoned is not None:
        client.known.cancelled_in_time += 1
        abandoned.is_cancelled = True
    client.cancel(request_id)
    sound(client).retires = request_id


_BOTH: Final[dict[Ask, float]] = {
    validate: 40,
    switch_mode: 7,
    create_task: 6,
    create_subtask: 4,
    complete_task: 5,
    get_task_info: 6,
    read_task: 2,
    hand_over: 1,
    list_modes: 3,
    get_mode_info: 4,
    lists: 5,
    read_mode: 3,
    prompt: 2,
    complete_slug: 2,
    complete_session: 1,
    follow: 3,
    abandon: 2,
    set_level: 1,
    provoke: 4,
}


def mix_of(*, is_stateless: bool) -> Mix:
    asks: dict[Ask, float] = {**_BOTH, (discover if is_stateless else sound): 2}
    return Mix(list(asks), list(asks.values()))
