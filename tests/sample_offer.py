"""An offer that uses everything a handler can do: what the tests talk to while the real one is not the point."""

from collections.abc import Sequence
from typing import Any

import trio
from msgspec import Struct

from modes_actor.actor.context import RequestContext
from modes_actor.surface.offer import Offer, OfferedTool, Soon
from modes_actor.wire.base import Annotations, Icon, Implementation
from modes_actor.wire.client_features import (
    CreateMessage,
    CreateMessageParams,
    CreateMessageResult,
    Elicit,
    ElicitFormParams,
    ElicitResult,
    FormSchema,
    ListRoots,
    ListRootsResult,
    SamplingMessage,
    StringSchema,
)
from modes_actor.wire.completion import Completion
from modes_actor.wire.content import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from modes_actor.wire.errors import InvalidParams, ResourceNotFound
from modes_actor.wire.prompts import GetPromptResult, Prompt, PromptArgument, PromptMessage
from modes_actor.wire.resources import ReadResourceResult, Resource, ResourceTemplate
from modes_actor.wire.tools import CallToolResult, Tool, ToolAnnotations

EVERY_CONTENT: list[ContentBlock] = [
    TextContent("hello", Annotations(audience=["user"], priority=0.5)),
    ImageContent("aGVsbG8=", "image/png"),
    AudioContent("aGVsbG8=", "audio/wav"),
    ResourceLink("sample://one", "one", title="One", size=3),
    EmbeddedResource(ResourceContents(uri="sample://one", text="one", mime_type="text/plain")),
    EmbeddedResource(ResourceContents(uri="sample://two", blob="dHdv")),
]


class NoArguments(Struct):
    pass


class EchoArguments(Struct):
    text: str
    times: int = 1


class Gate:
    """Work that waits until a test lets it go, and counts of what was done."""

    def __init__(self) -> None:
        self.opened = trio.Event()
        self.echoed = 0
        self.entered = 0
        self.cancelled = 0


def text(said: str) -> CallToolResult:
    return CallToolResult([TextContent(said)], structured_content={"said": said})


def tool(name: str, **more: Any) -> Tool:
    return Tool(name=name, description=f"sample {name}", input_schema={"type": "object"}, **more)


class SampleResources:
    def resources(self) -> Sequence[Resource]:
        return [
            Resource(uri="sample://one", name="one", title="One", mime_type="text/plain", size=3),
            Resource(uri="sample://two", name="two", annotations=Annotations(last_modified="2026-01-01T00:00:00Z")),
        ]

    def templates(self) -> Sequence[ResourceTemplate]:
        return [ResourceTemplate(uri_template="sample://{name}", name="any", description="any of them")]

    def read(self, uri: str, context: RequestContext) -> Soon[ReadResourceResult]:
        if uri == "sample://one":
            return ReadResourceResult([ResourceContents(uri=uri, text="one", mime_type="text/plain")])
        if uri == "sample://two":
            return self._read_slowly(uri)
        raise ResourceNotFound(uri)

    async def _read_slowly(self, uri: str) -> ReadResourceResult:
        await trio.lowlevel.checkpoint()
        return ReadResourceResult([ResourceContents(uri=uri, blob="dHdv")])


class SamplePrompts:
    def prompts(self) -> Sequence[Prompt]:
        return [
            Prompt(name="plain", title="Plain"),
            Prompt(name="greet", arguments=[PromptArgument("who", required=True), PromptArgument("how")]),
        ]

    def get(self, prompt: Prompt, arguments: dict[str, str], context: RequestContext) -> Soon[GetPromptResult]:
        if prompt.name == "plain":
            return GetPromptResult([PromptMessage("user", block) for block in EVERY_CONTENT])
        return GetPromptResult([PromptMessage("assistant", TextContent(f"Hello, {arguments['who']}"))], "a greeting")


def sample_offer(gate: Gate | None = None, *, lists_change: bool = True) -> Offer:
    """The sample. Tools that wait, wait at `gate`."""
    gate = gate or Gate()

    def echo(arguments: EchoArguments, context: RequestContext) -> CallToolResult:
        gate.echoed += 1
        return text(arguments.text * arguments.times)

    def everything(arguments: NoArguments, context: RequestContext) -> CallToolResult:
        return CallToolResult(EVERY_CONTENT, structured_content={"all": True}, metadata={"count": len(EVERY_CONTENT)})

    async def wait(arguments: NoArguments, context: RequestContext) -> CallToolResult:
        gate.entered += 1
        try:
            await gate.opened.wait()
        except trio.Cancelled:
            gate.cancelled += 1
            raise
        return text("waited")

    async def work(arguments: NoArguments, context: RequestContext) -> CallToolResult:
        for step in (1, 1, 2):  # the repeated one must not be reported
            await context.report_progress(step, 2, f"step {step}")
        await context.log("debug", "a detail")
        await context.log("error", {"what": "a problem"}, logger="sample")
        return text("worked")

    async def ask_name(arguments: NoArguments, context: RequestContext) -> CallToolResult:
        form = FormSchema({"name": StringSchema(title="Your name")}, required=["name"])
        answer = await context.ask("name", Elicit(ElicitFormParams("Who are you?", form)), ElicitResult, within=30)
        return text(f"{answer.action}: {(answer.content or {}).get('name')}")

    async def ask_model(arguments: NoArguments, context: RequestContext) -> CallToolResult:
        message = SamplingMessage("user", TextContent("Say hello"))
        answer = await context.ask("model", CreateMessage(CreateMessageParams([message], 10)), CreateMessageResult)
        assert isinstance(answer.content, TextContent)
        return text(answer.content.text)

    async def ask_roots(arguments: NoArguments, context: RequestContext) -> CallToolResult:
        answer = await context.ask("roots", ListRoots(), ListRootsResult)
        return text(", ".join(root.uri for root in answer.roots))

    def crash(arguments: NoArguments, context: RequestContext) -> CallToolResult:
        raise RuntimeError("secret of /home/someone")

    async def crash_later(arguments: NoArguments, context: RequestContext) -> CallToolResult:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("secret of /home/someone")

    async def refuse_in_nursery(arguments: NoArguments, context: RequestContext) -> CallToolResult:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.lowlevel.checkpoint)
            raise InvalidParams("not like this")

    async def crash_when_cancelled(arguments: NoArguments, context: RequestContext) -> CallToolResult:
        async def fail_at_the_end() -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise RuntimeError("failed while being cancelled")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_at_the_end)
            nursery.start_soon(trio.sleep_forever)
        raise AssertionError("unreachable")

    def unencodable(arguments: NoArguments, context: RequestContext) -> CallToolResult:
        return CallToolResult([], structured_content={"what": object()})

    def who(arguments: NoArguments, context: RequestContext) -> CallToolResult:
        name = context.client_info.name if context.client_info else None
        return text(f"{name} in {context.version.name} ({context.era.value}), request {context.request_id!r}")

    annotations = ToolAnnotations(title="Echo", read_only_hint=True, idempotent_hint=True)
    output_schema = {"type": "object", "properties": {"said": {"type": "string"}}}
    described = tool(
        "echo", title="Echo", annotations=annotations, output_schema=output_schema, icons=[Icon("https://x.invalid/i")]
    )
    return Offer(
        info=Implementation("sample", "1", title="Sample", icons=[Icon("https://x.invalid/i", sizes=["16x16"])]),
        instructions="Echo things.",
        tools=lambda: [
            OfferedTool(described, EchoArguments, echo),
            OfferedTool(tool("everything"), NoArguments, everything),
            OfferedTool(tool("wait"), NoArguments, wait),
            OfferedTool(tool("work"), NoArguments, work),
            OfferedTool(tool("ask_name"), NoArguments, ask_name),
            OfferedTool(tool("ask_model"), NoArguments, ask_model),
            OfferedTool(tool("ask_roots"), NoArguments, ask_roots),
            OfferedTool(tool("crash"), NoArguments, crash),
            OfferedTool(tool("crash_later"), NoArguments, crash_later),
            OfferedTool(tool("crash_when_cancelled"), NoArguments, crash_when_cancelled),
            OfferedTool(tool("refuse_in_nursery"), NoArguments, refuse_in_nursery),
            OfferedTool(tool("unencodable"), NoArguments, unencodable),
            OfferedTool(tool("who"), NoArguments, who),
        ],
        resources=SampleResources(),
        prompts=SamplePrompts(),
        complete=lambda params, context: Completion([params.argument.value + suffix for suffix in "abc"]),
        lists_change=lists_change,
    )
