"""What clients ask that has the same answer every time: lists, modes, prompts, completion, signs of life."""

from typing import Final

import msgspec
from load_answers import OWN, TYPED, Message, Reading, ToolAnswer, Wrong, only, same
from load_client import Sent, VirtualClient
from load_project import MODE_URIS, MODES, PROMPTS, TOOLS
from load_project import TYPED as TYPED_BY_PEOPLE

from modes_actor.surface.mode_results import ModeDetails, ModeList
from modes_actor.wire.base import EmptyResult
from modes_actor.wire.completion import CompleteResult
from modes_actor.wire.lifecycle import DiscoverResult, InitializeResult
from modes_actor.wire.notifications import LOG_LEVELS
from modes_actor.wire.prompts import GetPromptResult, ListPromptsResult
from modes_actor.wire.resources import ListResourcesResult, ListResourceTemplatesResult, ReadResourceResult
from modes_actor.wire.tools import ListToolsResult
from modes_actor.wire.versions import HANDSHAKE_VERSIONS, STATELESS_VERSIONS


class _Slug(msgspec.Struct):
    slug: str


_slug: Final = msgspec.json.Decoder(_Slug)


def initialize(client: VirtualClient) -> None:
    version = client.one_of(HANDSHAKE_VERSIONS).name

    def check(answer: Message) -> None:
        same(TYPED, "the version", client.reading.result(answer, InitializeResult).protocol_version, version)

    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}
    client.ask("initialize", "initialize", params, check)


def discover(client: VirtualClient) -> Sent:
    def check(answer: Message) -> None:
        found = client.reading.result(answer, DiscoverResult).supported_versions
        same(TYPED, "the versions", found, [version.name for version in STATELESS_VERSIONS])

    return client.ask_again("server/discover", "server/discover", {}, "discover", check)


def sound(client: VirtualClient) -> Sent:
    """A sign of life: whatever was sent before it was at least looked at before its answer."""
    if client.is_stateless:
        return discover(client)

    def check(answer: Message) -> None:
        client.reading.result(answer, EmptyResult)

    return client.ask("ping", "ping", {}, check)


def set_level(client: VirtualClient) -> None:
    """What the client wants to hear of the log, in the era that has this request."""
    if client.is_stateless:
        discover(client)
        return

    def check(answer: Message) -> None:
        client.reading.result(answer, EmptyResult)

    client.ask("logging/setLevel", "logging/setLevel", {"level": client.one_of(LOG_LEVELS)}, check)


def lists(client: VirtualClient) -> None:
    """One of the four lists."""
    method = client.one_of(_METHODS)
    client.ask_again(method, method, {}, method, lambda answer: _LISTS[method](client.reading, answer))


def _tools(reading: Reading, answer: Message) -> None:
    tools = reading.result(answer, ListToolsResult).tools
    same(TYPED, "the list of tools", tuple(tool.name for tool in tools), TOOLS)


def _resources(reading: Reading, answer: Message) -> None:
    resources = reading.result(answer, ListResourcesResult).resources
    same(TYPED, "the list of resources", tuple(resource.uri for resource in resources), MODE_URIS)


def _templates(reading: Reading, answer: Message) -> None:
    found = {
        template.uri_template for template in reading.result(answer, ListResourceTemplatesResult).resource_templates
    }
    due = {"mode://{slug}", "mode://{slug}/config", "mode://{slug}/system_prompt", "task://{session_id}"}
    same(TYPED, "the set of templates", found, due)


def _prompts(reading: Reading, answer: Message) -> None:
    prompts = reading.result(answer, ListPromptsResult).prompts
    same(TYPED, "the list of prompts", tuple(prompt.name for prompt in prompts), PROMPTS)


_LISTS: Final = {
    "tools/list": _tools,
    "resources/list": _resources,
    "resources/templates/list": _templates,
    "prompts/list": _prompts,
}
_METHODS: Final = tuple(_LISTS)


def list_modes(client: VirtualClient) -> None:
    def check(answer: Message) -> None:
        told = client.reading.result(answer, ToolAnswer[ModeList]).structured_content
        same(TYPED, "the list of modes", tuple(mode.slug for mode in told.modes), MODES)

    client.ask_again("list_modes", "tools/call", {"name": "list_modes"}, "list_modes", check)


def get_mode_info(client: VirtualClient) -> None:
    slug, with_prompt = client.one_of(MODES), client.random.random() < 0.3

    def check(answer: Message) -> None:
        told = client.reading.result(answer, ToolAnswer[ModeDetails]).structured_content
        same(OWN, "the mode", (told.slug, told.system_prompt is not None), (slug, with_prompt))

    arguments = {"mode_slug": slug, "include_system_prompt": with_prompt}
    params = {"name": "get_mode_info", "arguments": arguments}
    client.ask_again("get_mode_info", "tools/call", params, f"get_mode_info {slug} {with_prompt}", check)


def read_mode(client: VirtualClient) -> None:
    uri = client.one_of(MODE_URIS)

    def check(answer: Message) -> None:
        contents = only(client.reading.result(answer, ReadResourceResult).contents)
        same(OWN, "what was read", contents.uri, uri)
        if uri.endswith("/system_prompt"):
            same(TYPED, "its type", contents.mime_type, "text/plain")
            return
        try:
            found = _slug.decode(contents.text or "").slug
        except msgspec.MsgspecError as error:
            raise Wrong(TYPED, f"the resource is no mode: {error}") from error
        same(OWN, "the mode", found, uri.split("/")[2])

    client.ask_again("resources/read", "resources/read", {"uri": uri}, uri, check)


def prompt(client: VirtualClient) -> None:
    """The prompt of a mode, for a task that nobody else has."""
    slug, task = client.one_of(MODES), f"Errand {client.now:.6f} of client {client.number}"

    def check(answer: Message) -> None:
        message = only(client.reading.result(answer, GetPromptResult).messages)
        if not getattr(message.content, "text", "").endswith(f"# Task\n\n{task}\n"):
            raise Wrong(OWN, f"the prompt does not end with the task {task!r}")

    client.ask("prompts/get", "prompts/get", {"name": slug, "arguments": {"task": task}}, check)


def complete_slug(client: VirtualClient) -> None:
    typed = client.one_of(TYPED_BY_PEOPLE)

    def check(answer: Message) -> None:
        values = client.reading.result(answer, CompleteResult).completion.values
        same(OWN, "the completion", values, typed.completed)

    params = {
        "ref": {"type": "ref/prompt", "name": "handoff"},
        "argument": {"name": typed.argument, "value": typed.value},
    }
    question = f"complete {typed.argument} {typed.value}"
    client.ask_again("completion/complete", "completion/complete", params, question, check)
