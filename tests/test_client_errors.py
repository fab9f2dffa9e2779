"""The client: refusals and answers that make no sense are exceptions, the same in both eras."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from modes_actor.client import (
    BadAnswer,
    Client,
    FileRestricted,
    ModeNotFound,
    ServerError,
    SessionExpired,
    TaskNotFound,
    ToolFailed,
    ToolRestricted,
    ValidationFailed,
)
from tests.conversation import Json
from tests.modes_house import UNKNOWN_SESSION, Place
from tests.scripted_server import EraName, Outcome, in_both_eras, scripted, serving


async def unknown_mode(client: Client, place: Place) -> object:
    return await client.get_mode_info("nope")


async def unknown_mode_resource(client: Client, place: Place) -> object:
    return await client.read_resource("mode://nope")


async def unknown_session(client: Client, place: Place) -> object:
    return await client.get_task_info(UNKNOWN_SESSION)


async def expired_session(client: Client, place: Place) -> object:
    created = await client.create_task("code")
    place.clock.advance(3601)
    return await client.get_task_info(created.session_id)


async def malformed_slug(client: Client, place: Place) -> object:
    return await client.create_task("Not a slug!")


async def forbidden_tool(client: Client, place: Place) -> object:
    created = await client.create_task("ask")
    return await client.validate_tool_use(created.session_id, "execute_command", enforce=True)


async def forbidden_file(client: Client, place: Place) -> object:
    created = await client.create_task("architect")
    return await client.validate_tool_use(created.session_id, "write_to_file", "src/app.py", enforce=True)


@in_both_eras
@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (unknown_mode, ModeNotFound),
        (unknown_mode_resource, ModeNotFound),
        (unknown_session, TaskNotFound),
        (expired_session, SessionExpired),
        (malformed_slug, ValidationFailed),
        (forbidden_tool, ToolRestricted),
        (forbidden_file, FileRestricted),
    ],
)
async def test_a_refusal_is_the_same_exception_in_both_eras(
    tmp_path: Path, attempt: Callable[[Client, Place], Any], expected: type[ServerError], era: EraName
) -> None:
    """Although one era answers with an error and the other with a result."""
    place = Place(tmp_path)
    async with serving(place.offer(), era=era) as client:
        with pytest.raises(ServerError) as caught:
            await attempt(client, place)
    assert type(caught.value) is expected
    assert caught.value.message == str(caught.value)
    assert caught.value.message.startswith(expected.told_as.phrase)
    assert caught.value.code in (expected.told_as.code, -32602)


async def test_the_numbers_of_other_servers_are_not_taken_for_ours() -> None:
    """Many answer -32001 and -32002 for reasons of their own."""
    async with scripted() as (client, server, nursery):
        outcomes = []
        for code, message in ((-32001, "Request timed out"), (-32002, "Resource not found: x")):
            outcomes.append(outcome := Outcome())
            nursery.start_soon(outcome.of, client.read_resource, "x")
            error = {"code": code, "message": message, "data": {"uri": "x"}}
            await server.say({"jsonrpc": "2.0", "id": (await server.hear())["id"], "error": error})
        await trio.testing.wait_all_tasks_blocked()
    told = [
        (type(each.error), each.error.code, each.error.data) for each in outcomes if isinstance(each.error, ServerError)
    ]
    assert told == [(ServerError, -32001, {"uri": "x"}), (ServerError, -32002, {"uri": "x"})]


async def test_a_tool_that_fails_in_its_own_words_is_an_exception_too() -> None:
    """Nobody should take its complaint for a result."""
    async with scripted() as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.call_tool, "deploy")
        await server.answer(await server.hear(), {"content": [{"type": "text", "text": "no disk"}], "isError": True})
        await trio.testing.wait_all_tasks_blocked()
    assert isinstance(outcome.error, ToolFailed)
    assert (str(outcome.error), outcome.error.result.is_error) == ("no disk", True)


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"content": [], "structuredContent": {"modes": 7}}},
        {"result": "fine"},
        {"error": "no"},
        {},
    ],
    ids=["a wrong Struct", "no object", "no error object", "nothing"],
)
async def test_an_answer_that_makes_no_sense_is_an_exception(answer: Json) -> None:
    """The call does not wait for a better one."""
    async with scripted() as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.list_modes)
        await server.say({"jsonrpc": "2.0", "id": (await server.hear())["id"], **answer})
        await trio.testing.wait_all_tasks_blocked()
    assert isinstance(outcome.error, BadAnswer)
