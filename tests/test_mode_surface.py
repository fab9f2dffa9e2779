"""Modes and tasks as resources and prompts, news of them, and completion."""

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from modes_actor.actor.subscriptions import Event
from modes_actor.surface.house import House
from modes_actor.wire.versions import ALL_VERSIONS, V2025_11_25, V2026_07_28, Era, Version
from tests.conversation import Json, talking
from tests.modes_house import ALL_MODES, CREATED, GROUPS, NOTICED_WITHIN, ROOMODES, Client, Place, working

RESOURCES_CHANGED = ("notifications/resources/list_changed", None)
PROMPTS_CHANGED = ("notifications/prompts/list_changed", None)
both_eras = pytest.mark.parametrize("version", [V2025_11_25, V2026_07_28], ids=lambda version: version.name)


def updated(*uris: str) -> list[tuple[str, str]]:
    return [("notifications/resources/updated", uri) for uri in uris]


async def test_every_mode_is_three_resources_as_the_reference_lists_them(tmp_path: Path) -> None:
    """In the order of the modes; tasks are not among them."""
    async with working(tmp_path) as client:
        listed = (await client.result("resources/list"))["resources"]
    parts = ("", "/config", "/system_prompt")
    assert [each["uri"] for each in listed] == [f"mode://{slug}{part}" for slug in ALL_MODES for part in parts]
    names = ("uri", "name", "mimeType", "description")
    assert [{key: each[key] for key in names} for each in listed[:3]] == [
        {
            "uri": "mode://code",
            "name": "💻 Code",
            "mimeType": "application/json",
            "description": "Full configuration for code mode",
        },
        {
            "uri": "mode://code/config",
            "name": "💻 Code - Configuration",
            "mimeType": "application/json",
            "description": "Structured configuration for code mode",
        },
        {
            "uri": "mode://code/system_prompt",
            "name": "💻 Code - System Prompt",
            "mimeType": "text/plain",
            "description": "System prompt for code mode",
        },
    ]


@both_eras
async def test_every_listed_resource_can_be_read_and_is_as_large_as_the_list_says(
    version: Version, tmp_path: Path
) -> None:
    """With the MIME type of the list; a size is that of the text in bytes."""
    async with working(tmp_path, version=version) as client:
        for resource in (await client.result("resources/list"))["resources"]:
            [contents] = (await client.result("resources/read", {"uri": resource["uri"]}))["contents"]
            assert (contents["uri"], contents["mimeType"]) == (resource["uri"], resource["mimeType"])
            assert contents["text"]
            assert resource.get("size") in (None, len(contents["text"].encode()))
            assert "size" in resource or resource["uri"].endswith("/system_prompt")


async def test_a_custom_mode_was_last_modified_when_its_file_was(tmp_path: Path) -> None:
    """A built-in one has no such time."""
    place = Place(tmp_path)
    os.utime(place.mode_file, (CREATED, CREATED))
    async with working(place) as client:
        listed = {each["uri"]: each for each in (await client.result("resources/list"))["resources"]}
    when = datetime.fromisoformat(listed["mode://docs"]["annotations"]["lastModified"])
    assert when.timestamp() == CREATED
    assert "annotations" not in listed["mode://code"]


async def test_there_are_templates_of_modes_and_of_tasks(tmp_path: Path) -> None:
    """Described, with the MIME type of what they give."""
    async with working(tmp_path) as client:
        templates = (await client.result("resources/templates/list"))["resourceTemplates"]
    assert {each["uriTemplate"]: each["mimeType"] for each in templates} == {
        "mode://{slug}": "application/json",
        "mode://{slug}/config": "application/json",
        "mode://{slug}/system_prompt": "text/plain",
        "task://{session_id}": "application/json",
    }
    assert all(each["name"] and each["description"] for each in templates)


async def test_a_mode_reads_as_the_reference_has_it(tmp_path: Path) -> None:
    """Its own words, and every group with whether it is enabled."""
    async with working(tmp_path) as client:
        mode = await client.read_json("mode://docs")
        code = await client.read_json("mode://code")
    groups: Json = {name: {"enabled": name in ("read", "edit", "mcp")} for name in GROUPS}
    groups["edit"]["file_regex"] = "^docs/"
    expected = {
        "slug": "docs",
        "name": "📝 Docs",
        "source": "project",
        "description": "Write documentation",
        "when_to_use": "Use this mode for guides.",
        "role_definition": "You write guides.",
        "custom_instructions": "Be brief.",
        "tool_groups": groups,
    }
    assert mode.items() >= expected.items()
    assert code["tool_groups"] == {name: {"enabled": True} for name in GROUPS}


async def test_the_config_of_a_mode_reads_as_the_reference_has_it(tmp_path: Path) -> None:
    """All that a mode file says of it, so that one can be written from it, and nothing is lost."""
    async with working(tmp_path) as client:
        config = await client.read_json("mode://docs/config")
        code = await client.read_json("mode://code/config")
    assert config == {
        "slug": "docs",
        "name": "📝 Docs",
        "source": "project",
        "groups": ["read", ["edit", {"fileRegex": "^docs/", "description": "guides"}], "mcp"],
        "description": "Write documentation",
        "when_to_use": "Use this mode for guides.",
        "role_definition": "You write guides.",
        "custom_instructions": "Be brief.",
        "mcp_restrictions": {"allowedServers": ["github"], "disallowedTools": ["mcp__github__delete_repo"]},
    }
    assert (code["groups"], code["source"]) == (GROUPS, "builtin")


async def test_the_config_of_a_mode_that_inherits_its_groups_does_not_say_that_it_has_none(tmp_path: Path) -> None:
    """An empty list in a mode file means: no tools at all."""
    async with working(tmp_path) as client:
        config = await client.read_json("mode://DocWriter/config")
    assert config["extends"] == "docs"
    assert config.get("groups") != []


async def test_a_task_reads_with_its_messages_and_its_hierarchy(tmp_path: Path) -> None:
    """All that get_task_info can tell, as JSON."""
    async with working(tmp_path) as client:
        session_id = await client.create(initial_message="Do it")
        await client.create("ask", parent_session_id=session_id)
        everything = {"include_messages": True, "include_hierarchy": True}
        told = await client.told("get_task_info", session_id=session_id, **everything)
        [contents] = (await client.result("resources/read", {"uri": f"task://{session_id}"}))["contents"]
    assert contents["mimeType"] == "application/json"
    assert json.loads(contents["text"]) == told
    assert [len(told["messages"]), len(told["hierarchy"])] == [1, 2]


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"])
@both_eras
async def test_lists_are_the_same_whatever_sessions_there_are(version: Version, method: str, tmp_path: Path) -> None:
    """A list must not change as a side effect of a request."""
    async with working(tmp_path, version=version) as client:
        before = await client.result(method)
        session_id = await client.create("docs")
        await client.call("switch_mode", session_id=session_id, new_mode_slug="ask")
        assert await client.result(method) == before


async def test_lists_are_always_those_of_the_modes_in_force(tmp_path: Path, autojump_clock: MockClock) -> None:
    """However often their file changed since they were last asked for. Many rounds: memory is used again by chance."""
    async with working(tmp_path, version=V2026_07_28) as client:
        for number in range(250):
            mode = f"{{slug: m{number}, name: M, roleDefinition: x, groups: []}}"
            for times in range(1 + number % 4):
                await client.place.save_modes(f"customModes: [{mode}]{'#' * times}")
            modes = (await client.told("list_modes", source="project"))["modes"]
            assert [each["slug"] for each in modes] == [f"m{number}"]
            resources = (await client.result("resources/list"))["resources"]
            assert resources[-3]["uri"] == f"mode://m{number}"


@both_eras
async def test_whoever_subscribed_to_a_task_hears_of_its_changes(version: Version, tmp_path: Path) -> None:
    """Of a subtask, a switch and its end, each once; not of being looked at."""
    async with working(tmp_path, version=version) as client:
        session_id = await client.create()
        await client.create()
        uri = f"task://{session_id}"
        await client.subscribe(uri)
        heard = []
        for name, arguments in (
            ("create_task", {"mode_slug": "ask", "parent_session_id": session_id}),
            ("get_task_info", {"session_id": session_id}),
            ("switch_mode", {"session_id": session_id, "new_mode_slug": "debug"}),
            ("validate_tool_use", {"session_id": session_id, "tool_name": "read_file"}),
            ("complete_task", {"session_id": session_id, "status": "completed"}),
        ):
            heard.append(await news_of(client, name, arguments))
    assert heard == [updated(uri), [], updated(uri), [], updated(uri)]


async def news_of(client: Client, name: str, arguments: Json) -> list[Any]:
    """What is heard of a call, before or after its answer."""
    conversation = client.conversation
    await conversation.send(conversation.compose("tools/call", {"name": name, "arguments": arguments}, id="call"))
    early = []
    while (message := await conversation.receive()).get("id") != "call":
        early.append((message["method"], message["params"]["uri"]))
    return early + await client.news()


@both_eras
async def test_the_ancestors_of_a_task_change_with_it(version: Version, tmp_path: Path) -> None:
    """Their hierarchies show it. A task of another tree does not."""
    async with working(tmp_path, version=version) as client:
        top, child, first, _ = await client.family()
        other = await client.create()
        await client.subscribe(*(f"task://{each}" for each in (top, child, first, other)))
        heard = await news_of(client, "switch_mode", {"session_id": first, "new_mode_slug": "ask"})
    assert set(heard) == set(updated(*(f"task://{each}" for each in (top, child, first))))


@both_eras
async def test_a_task_that_is_cancelled_with_its_parent_is_news(version: Version, tmp_path: Path) -> None:
    """It was nobody's own request."""
    async with working(tmp_path, version=version) as client:
        top, _, _, second = await client.family()
        await client.subscribe(f"task://{second}")
        heard = await news_of(client, "complete_task", {"session_id": top, "status": "cancelled"})
    assert heard == updated(f"task://{second}")


@pytest.mark.parametrize("asked_before", [True, False], ids=["modes were listed before", "nothing was asked before"])
@both_eras
async def test_whoever_subscribed_to_a_mode_hears_when_its_file_changes(
    version: Version, asked_before: bool, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Of the mode and its parts, and of the lists; also if nothing else was ever asked of the server."""
    async with working(tmp_path, version=version) as client:
        if asked_before:
            await client.call("list_modes")
        lists = {"resourcesListChanged": True, "promptsListChanged": True}
        await client.subscribe("mode://docs", "mode://docs/system_prompt", "mode://mine", **lists)
        await client.place.save_modes(ROOMODES.replace("Be brief.", "Be long."))
        heard = await client.news()
    expected = [RESOURCES_CHANGED, PROMPTS_CHANGED, *updated("mode://docs", "mode://docs/system_prompt")]
    assert sorted(heard, key=str) == sorted(expected, key=str)


@both_eras
async def test_whoever_subscribed_to_a_prompt_hears_when_its_rules_change(
    version: Version, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Rules are part of the prompt, and of nothing else."""
    async with working(tmp_path, version=version) as client:
        await client.subscribe("mode://docs", "mode://docs/system_prompt")
        rules = client.place.project / ".roo" / "rules-docs"
        rules.mkdir(parents=True)
        (rules / "style.md").write_text("Short sentences.")
        await trio.sleep(NOTICED_WITHIN)
        assert await client.news() == updated("mode://docs/system_prompt")


async def test_a_mode_whose_base_is_removed_is_news(tmp_path: Path, autojump_clock: MockClock) -> None:
    """It allows nothing from then on."""
    async with working(tmp_path) as client:
        await client.subscribe("mode://narrow")
        without = ROOMODES.replace("slug: docs", "slug: papers")
        await client.place.save_modes(without)
        assert updated("mode://narrow")[0] in await client.news()


async def test_the_config_of_a_mode_with_hours_says_so(tmp_path: Path) -> None:
    """Written into a mode file again, it allows what it allowed."""
    hours = "{activeHours: '09:00-18:00', days: [mon, fri], timezone: UTC}"
    head = "customModes:\n  - slug: late\n    name: Late\n    roleDefinition: You rest.\n"
    modes = f"{head}    groups: [[command, {hours}]]\n    mcpRestrictions: {hours}\n"
    async with working(tmp_path) as client:
        client.place.mode_file.write_text(modes, encoding="utf-8")
        config = await client.read_json("mode://late/config")
        said = {"activeHours": "09:00-18:00", "days": ["mon", "fri"], "timezone": "UTC"}
        assert (config["groups"], config["mcp_restrictions"]) == ([["command", said]], said)


async def changed_by(client: Client, uri: str, modes: str | None) -> list[Any]:
    """What a subscriber hears when the mode file changes, after it was seen that this changes what is read."""
    before = await client.read(uri)
    await client.subscribe(uri)
    await client.place.save_modes(modes)
    heard = await client.news()
    if modes is not None:
        assert await client.read(uri) != before
    return heard


@pytest.mark.parametrize(
    ("uri", "old", "new"),
    [
        ("mode://docs", "Be brief.", "Be long."),
        ("mode://docs/config", "guides}", "manuals}"),
        ("mode://docs/system_prompt", "You write guides.", "You write manuals."),
        ("mode://DocWriter", "'^docs/'", "'^manuals/'"),
        ("mode://DocWriter/system_prompt", "You write guides.", "You write manuals."),
        ("mode://code/system_prompt", "Use this mode for guides.", "Use this mode for manuals."),
    ],
    ids=["itself", "config", "prompt", "what it extends", "the role it inherits", "what its prompt says of others"],
)
async def test_a_resource_that_reads_differently_after_a_mode_file_changed_was_news(
    uri: str, old: str, new: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Whichever mode of the file it was that changed."""
    async with working(tmp_path, version=V2026_07_28) as client:
        assert await changed_by(client, uri, ROOMODES.replace(old, new)) == updated(uri)


async def test_a_mode_that_is_gone_was_news(tmp_path: Path, autojump_clock: MockClock) -> None:
    """And reading it is not found from then on."""
    async with working(tmp_path, version=V2026_07_28) as client:
        assert await changed_by(client, "mode://docs", None) == updated("mode://docs")
        error = await client.error("resources/read", {"uri": "mode://docs"})
    assert error["message"].startswith("Mode not found: docs.")


async def test_a_file_that_is_saved_without_a_change_is_no_news(tmp_path: Path, autojump_clock: MockClock) -> None:
    """A comment is nothing to a client."""
    async with working(tmp_path) as client:
        await client.read("mode://docs")
        await client.subscribe("mode://docs")
        await client.place.save_modes(f"{ROOMODES}# a comment\n")
        assert await client.news() == []


def text_of(prompt: Json) -> str:
    [message] = prompt["messages"]
    assert (message["role"], message["content"]["type"]) == ("user", "text")
    text: str = message["content"]["text"]
    return text


async def test_every_mode_is_a_prompt_and_so_is_the_handoff(tmp_path: Path) -> None:
    """A mode's takes an optional task; the handoff needs to know which and whereto."""
    async with working(tmp_path) as client:
        prompts = (await client.result("prompts/list"))["prompts"]
    assert [prompt["name"] for prompt in prompts] == [*ALL_MODES, "handoff"]
    arguments = [{each["name"]: each.get("required", False) for each in prompt["arguments"]} for prompt in prompts]
    assert arguments[:-1] == [{"task": False}] * len(ALL_MODES)
    assert arguments[-1] == {"session_id": True, "to_mode": True}
    assert all(prompt["title"] and prompt["description"] for prompt in prompts)


@pytest.mark.parametrize("version", ALL_VERSIONS, ids=lambda version: version.name)
async def test_the_first_prompt_works_without_arguments(version: Version, tmp_path: Path) -> None:
    """Clients try it so."""
    async with working(tmp_path, version=version) as client:
        first = (await client.result("prompts/list"))["prompts"][0]["name"]
        text = text_of(await client.result("prompts/get", {"name": first}))
        assert text == await client.read(f"mode://{first}/system_prompt")


async def test_the_prompt_of_a_mode_is_its_system_prompt_and_the_task(tmp_path: Path) -> None:
    """The task comes after it."""
    async with working(tmp_path) as client:
        prompt = await client.result("prompts/get", {"name": "docs", "arguments": {"task": "Write a guide"}})
        system_prompt = await client.read("mode://docs/system_prompt")
    text = text_of(prompt)
    assert text.startswith(system_prompt)
    assert "Write a guide" in text.removeprefix(system_prompt)
    assert "📝 Docs" in prompt["description"]


async def test_the_handoff_summarises_a_task_for_the_next_mode(tmp_path: Path) -> None:
    """What was said, where it was and why, what is open, and what to call first."""
    async with working(tmp_path) as client:
        session_id = await client.create("architect", initial_message="Design it")
        await client.call("switch_mode", session_id=session_id, new_mode_slug="docs", reason="to write it down")
        await client.create("ask", parent_session_id=session_id)
        arguments = {"session_id": session_id, "to_mode": "code"}
        text = text_of(await client.result("prompts/get", {"name": "handoff", "arguments": arguments}))
    for words in (
        session_id,
        "Design it",
        "architect",
        "docs",
        "to write it down",
        "code",
        "in ask: active",
        "switch_mode",
    ):
        assert words in text


async def completed(client: Client, argument: str, value: str = "", ref: Json | None = None) -> Json:
    ref = ref or {"type": "ref/prompt", "name": "handoff"}
    params = {"ref": ref, "argument": {"name": argument, "value": value}}
    completion: Json = (await client.result("completion/complete", params))["completion"]
    return completion


@pytest.mark.parametrize(
    ("argument", "value", "values"),
    [
        ("to_mode", "", ALL_MODES),
        ("to_mode", "a", ["architect", "ask"]),
        ("mode_slug", "DOC", ["docs", "DocWriter"]),
        ("source", "", ["builtin", "global", "project", "all"]),
        ("source", "g", ["global"]),
        ("status", "", ["completed", "failed", "cancelled"]),
        ("group", "", GROUPS),
        ("to_mode", "zzz", []),
        ("nothing-we-know", "", []),
    ],
)
async def test_completion_offers_the_values_that_begin_as_typed_first(
    argument: str, value: str, values: list[str], tmp_path: Path
) -> None:
    """Slugs, sources, statuses, groups; others that have it inside may follow."""
    async with working(tmp_path) as client:
        found = (await completed(client, argument, value))["values"]
    assert found[: len(values)] == values
    assert bool(found) == bool(values)


async def test_the_slug_of_a_resource_template_is_completed(tmp_path: Path) -> None:
    """As that of a prompt is."""
    async with working(tmp_path) as client:
        ref = {"type": "ref/resource", "uri": "mode://{slug}/config"}
        assert (await completed(client, "slug", "narr", ref))["values"] == ["narrow"]


async def test_sessions_are_completed_the_one_last_used_first(tmp_path: Path) -> None:
    """Any use counts; what has expired is not offered."""
    async with working(tmp_path) as client:
        await client.create()
        client.place.clock.advance(3601)
        sessions = []
        for _ in range(3):
            sessions.append(await client.create())
            client.place.clock.advance(1)
        await client.call("get_task_info", session_id=sessions[1])
        ref = {"type": "ref/resource", "uri": "task://{session_id}"}
        found = [(await completed(client, "session_id", "sess_", each))["values"] for each in (None, ref)]
        only = (await completed(client, "session_id", sessions[0][:20]))["values"]
    assert found == [[sessions[1], sessions[2], sessions[0]]] * 2
    assert only == [sessions[0]]


async def test_of_many_sessions_the_hundred_last_used_are_offered_and_the_rest_is_counted(tmp_path: Path) -> None:
    """The oldest, just used, is the first of them."""
    async with working(tmp_path) as client:
        sessions = []
        for _ in range(102):
            client.place.clock.advance(1)
            sessions.append(await client.create())
        client.place.clock.advance(1)
        await client.call("get_task_info", session_id=sessions[0])
        completion = await completed(client, "session_id")
    assert completion["values"] == [sessions[0], *sessions[:2:-1]]
    assert completion["hasMore"] is True


@pytest.mark.parametrize("version", ALL_VERSIONS, ids=lambda version: version.name)
async def test_instructions_tell_a_model_how_to_begin(version: Version, tmp_path: Path) -> None:
    """In `initialize` and in `server/discover`, with the tools to call."""
    async with talking(Place(tmp_path).offer(), version=None) as conversation:
        if version.era is Era.STATELESS:
            conversation.version = version
            result = await conversation.result("server/discover", {})
        else:
            params = {"protocolVersion": version.name, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            result = await conversation.result("initialize", params)
    for tool in ("list_modes", "create_task", "validate_tool_use", "switch_mode", "complete_task"):
        assert tool in result["instructions"]
    assert result["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    assert result["capabilities"]["prompts"] == {"listChanged": True}


async def test_a_late_use_of_a_session_is_written_at_once(tmp_path: Path) -> None:
    """Other processes would take it for expired before the next regular flush."""
    place = Place(tmp_path)
    house = House(place.config, working_directory=place.project, home=place.home, now=place.clock)
    send, _ = trio.open_memory_channel[Event](100)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, send)
        session_id = (await house.sessions.create("code", None, None)).session_id
        await trio.testing.wait_all_tasks_blocked()
        due = []
        for seconds in (1000, 1000, 1000):
            place.clock.advance(seconds)
            house.sessions.get(session_id)
            due.append(house.sessions.flush_is_due.is_set())
            await trio.testing.wait_all_tasks_blocked()
        assert due == [False, True, False]
        assert not house.sessions.flush_is_due.is_set()
        nursery.cancel_scope.cancel()
