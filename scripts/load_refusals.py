"""What clients ask on purpose to be refused, and the error that is due."""

from collections.abc import Callable
from typing import Final

from load_answers import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MODE_NOT_FOUND,
    SESSION_EXPIRED,
    TASK_NOT_FOUND,
    UNKNOWN_PROMPT,
    UNKNOWN_TOOL,
    VALIDATION_ERROR,
    Refusal,
)
from load_client import Params, VirtualClient

KIND: Final = "refusals"


def provoke(client: VirtualClient) -> None:
    """One of them."""
    expired = client.expired_session()
    if expired is not None:
        _call(client, "get_task_info", {"session_id": expired}, SESSION_EXPIRED)
        return
    client.one_of(_WAYS)(client)


def _ask(client: VirtualClient, method: str, params: Params, due: Refusal) -> None:
    client.ask(KIND, method, params, lambda message: client.reading.expect(message, due))


def _call(client: VirtualClient, name: str, arguments: Params, due: Refusal) -> None:
    _ask(client, "tools/call", {"name": name, "arguments": arguments}, due)


def _unknown_mode(client: VirtualClient) -> None:
    _call(client, "create_task", {"mode_slug": f"no-such-mode-{client.number}"}, MODE_NOT_FOUND)


def _unknown_mode_resource(client: VirtualClient) -> None:
    _ask(client, "resources/read", {"uri": "mode://no-such-mode"}, MODE_NOT_FOUND)


def _switch_to_nowhere(client: VirtualClient) -> None:
    work = client.changeable_work()
    if work is None:
        _unknown_mode(client)
        return
    task = work.tasks[0]
    arguments = {"session_id": task.session_id, "new_mode_slug": "no-such-mode"}
    client.ask(
        KIND,
        "tools/call",
        {"name": "switch_mode", "arguments": arguments},
        lambda message: client.reading.expect(message, MODE_NOT_FOUND),
        work,
        task,
    )


def _not_a_slug(client: VirtualClient) -> None:
    _call(client, "get_mode_info", {"mode_slug": "no slug!"}, VALIDATION_ERROR)


def _unknown_session(client: VirtualClient) -> None:
    session_id = f"sess_{client.random.getrandbits(128):032x}"
    _call(client, "validate_tool_use", {"session_id": session_id, "tool_name": "read_file"}, TASK_NOT_FOUND)


def _not_a_session(client: VirtualClient) -> None:
    _call(client, "complete_task", {"session_id": "nonsense", "status": "completed"}, VALIDATION_ERROR)


def _missing_argument(client: VirtualClient) -> None:
    _call(client, "create_task", {"initial_message": "In which mode?"}, VALIDATION_ERROR)


def _unknown_tool(client: VirtualClient) -> None:
    _call(client, "no_such_tool", {}, UNKNOWN_TOOL)


def _missing_name(client: VirtualClient) -> None:
    _ask(client, "tools/call", {"arguments": {}}, INVALID_PARAMS)


def _unknown_method(client: VirtualClient) -> None:
    _ask(client, "ping" if client.is_stateless else "server/discover", {}, METHOD_NOT_FOUND)


def _unknown_prompt(client: VirtualClient) -> None:
    _ask(client, "prompts/get", {"name": "no-such-prompt"}, UNKNOWN_PROMPT)


_WAYS: Final[list[Callable[[VirtualClient], None]]] = [
    _unknown_mode,
    _unknown_mode_resource,
    _switch_to_nowhere,
    _not_a_slug,
    _unknown_session,
    _not_a_session,
    _missing_argument,
    _unknown_tool,
    _missing_name,
    _unknown_method,
    _unknown_prompt,
]
