"""Long lists in pages: put together they are the list, and only a cursor that the list gave out opens the next."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from modes_actor.actor.context import RequestContext
from modes_actor.surface.offer import Offer, OfferedTool
from modes_actor.surface.pagination import PAGE_SIZE, page
from modes_actor.wire.base import Implementation
from modes_actor.wire.errors import InvalidParams
from modes_actor.wire.prompts import GetPromptResult, Prompt
from modes_actor.wire.resources import ReadResourceResult, Resource, ResourceTemplate
from modes_actor.wire.tools import CallToolResult
from modes_actor.wire.versions import ALL_VERSIONS, Version
from tests.conversation import Conversation, Json, talking
from tests.sample_offer import NoArguments, tool

REPEATABLE = settings(derandomize=True, database=None, deadline=None)
MANY = 1_201
NAMES = [f"item-{number}" for number in range(MANY)]


def encoded(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode()


def all_pages(items: Sequence[int], size: int) -> list[list[int]]:
    pages, cursor = [], None
    while True:
        listed, cursor = page(items, cursor, of="things", size=size)
        pages.append(listed)
        if cursor is None:
            return pages


@REPEATABLE
@given(st.integers(min_value=0, max_value=60), st.integers(min_value=1, max_value=20))
def test_the_pages_put_together_are_the_list(length: int, size: int) -> None:
    """Every page but the last is full, and the last is empty only if the list is."""
    items = list(range(length))
    slices = [items[start : start + size] for start in range(0, length, size)]
    assert (slices or [[]]) == all_pages(items, size)


@pytest.mark.parametrize("length", [0, 1, PAGE_SIZE])
def test_a_list_up_to_the_page_size_comes_whole(length: int) -> None:
    """Most lists are one page, and then there is no cursor."""
    assert page(range(length), None, of="things") == (list(range(length)), None)


def test_a_page_holds_five_hundred() -> None:
    """The one number that is promised."""
    listed, cursor = page(range(501), None, of="things")
    assert len(listed) == 500
    assert page(range(501), cursor, of="things") == ([500], None)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "2",
        "not a cursor",
        "é",
        "====",
        encoded(""),
        encoded("things"),
        encoded("things:"),
        encoded("things:0"),
        encoded("things:-2"),
        encoded("things:1"),
        encoded("things:3"),
        encoded("things:10"),
        encoded("things:1000000"),
        encoded("things:02"),
        encoded("things: 2"),
        encoded("things:+2"),
        encoded("things:2.0"),
        encoded("things:2:2"),
        encoded("things:²"),
        encoded("things:٢"),
        encoded("things:" + "9" * 5000),
        encoded("others:2"),
        encoded(":2"),
        encoded("things:2") + "=",
        encoded("things:2") + "\n",
        "!" + encoded("things:2"),
        encoded("things:2").lower(),
        urlsafe_b64encode(b"\xff:2").decode(),
    ],
)
def test_a_cursor_that_was_not_given_out_is_invalid_params(cursor: str) -> None:
    """Foreign, altered, out of range, or between two pages: refused, never misread."""
    with pytest.raises(InvalidParams, match="`cursor`") as raised:
        page(range(10), cursor, of="things", size=2)
    assert raised.value.data.field == "cursor"


@REPEATABLE
@given(st.text(max_size=20))
def test_no_text_but_a_cursor_opens_a_page(text: str) -> None:
    """Whatever a client makes up."""
    assume(text not in {encoded(f"things:{position}") for position in (2, 4, 6, 8)})
    with pytest.raises(InvalidParams):
        page(range(10), text, of="things", size=2)


@REPEATABLE
@given(st.data())
def test_a_cursor_with_one_character_changed_opens_no_page_but_its_own(data: st.DataObject) -> None:
    """A change either makes it unreadable or makes it another cursor of the same list, which opens that page."""
    cursor = page(range(10), None, of="things", size=2)[1]
    assert cursor is not None
    place = data.draw(st.integers(min_value=0, max_value=len(cursor) - 1))
    changed = cursor[:place] + data.draw(st.characters(max_codepoint=127)) + cursor[place + 1 :]
    try:
        listed, _ = page(range(10), changed, of="things", size=2)
    except InvalidParams:
        return
    position = int(urlsafe_b64decode(changed).decode().removeprefix("things:"))
    assert (listed, changed) == ([position, position + 1], encoded(f"things:{position}"))


def test_a_cursor_past_a_list_that_has_shrunk_is_invalid_params() -> None:
    """The client is told to start again, instead of getting an empty page."""
    _, cursor = page(range(10), None, of="things", size=5)
    with pytest.raises(InvalidParams, match="start again"):
        page(range(5), cursor, of="things", size=5)


class Many:
    """A thousand and more of everything."""

    def resources(self) -> Sequence[Resource]:
        return [Resource(uri=f"many://{name}", name=name) for name in NAMES]

    def templates(self) -> Sequence[ResourceTemplate]:
        return [ResourceTemplate(uri_template=f"many://{name}/{{x}}", name=name) for name in NAMES]

    def read(self, uri: str, context: RequestContext) -> ReadResourceResult:
        return ReadResourceResult([])

    def prompts(self) -> Sequence[Prompt]:
        return [Prompt(name=name) for name in NAMES]

    def get(self, prompt: Prompt, arguments: dict[str, str], context: RequestContext) -> GetPromptResult:
        return GetPromptResult([])


def nothing(arguments: NoArguments, context: RequestContext) -> CallToolResult:
    return CallToolResult([])


MANY_OF_ALL = Offer(
    info=Implementation("many", "1"),
    tools=lambda: [OfferedTool(tool(name), NoArguments, nothing) for name in NAMES],
    resources=Many(),
    prompts=Many(),
)
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}

every_list = pytest.mark.parametrize("method", LISTS)
every_version = pytest.mark.parametrize("version", ALL_VERSIONS, ids=lambda version: version.name)


async def walk(client: Conversation, method: str) -> list[Json]:
    """The results of the whole list, page by page."""
    results = [await client.result(method)]
    while "nextCursor" in results[-1]:
        results.append(await client.result(method, {"cursor": results[-1]["nextCursor"]}))
    return results


def names(result: Json, method: str) -> list[Any]:
    return [item["name"] for item in result[LISTS[method]]]


@every_version
@every_list
async def test_a_long_list_comes_in_pages_that_are_the_list(method: str, version: Version) -> None:
    """1,201 entries are three pages, each entry once and in order."""
    async with talking(MANY_OF_ALL, version=version) as client:
        pages = [names(result, method) for result in await walk(client, method)]
    assert [NAMES[:500], NAMES[500:1000], NAMES[1000:]] == pages


@every_list
async def test_the_same_list_comes_in_the_same_pages(method: str) -> None:
    """From the same server and from another: a cursor outlives the process that gave it out."""
    async with talking(MANY_OF_ALL) as client:
        once, again = await walk(client, method), await walk(client, method)
    async with talking(MANY_OF_ALL) as client:
        elsewhere = await walk(client, method)
    assert once == again == elsewhere


@every_version
@every_list
@pytest.mark.parametrize("cursor", ["", "nonsense", encoded("tools:7"), encoded("others:500")])
async def test_a_bad_cursor_is_invalid_params_on_the_wire(method: str, version: Version, cursor: str) -> None:
    """In every list of every version."""
    async with talking(MANY_OF_ALL, version=version) as client:
        error = await client.error(method, {"cursor": cursor})
    assert (error["code"], error["data"]["field"]) == (-32602, "cursor")


@every_list
async def test_the_cursor_of_one_list_is_refused_by_the_others(method: str) -> None:
    """It would point at the wrong thing."""
    async with talking(MANY_OF_ALL) as client:
        cursor = (await client.result(method))["nextCursor"]
        others = [await client.error(other, {"cursor": cursor}) for other in LISTS if other != method]
    assert [error["code"] for error in others] == [-32602] * 3


@every_list
async def test_a_cursor_that_is_no_string_is_invalid_params(method: str) -> None:
    """Refused by its type, before anyone looks inside."""
    async with talking(MANY_OF_ALL) as client:
        error = await client.error(method, {"cursor": 500})
    assert (error["code"], error["data"]["field"]) == (-32602, "cursor")
