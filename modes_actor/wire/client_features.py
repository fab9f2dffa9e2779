"""What a server may ask of a client: roots, sampling, elicitation.

The handshake era sends these as requests; the stateless era returns them inside an `InputRequiredResult` and gets the
answers with the request's next attempt. The Structs are the same.
"""

from typing import Any, ClassVar, Literal

from msgspec import UNSET, UnsetType, field

from modes_actor.wire.base import (
    ClientCapabilities,
    ElicitationCapability,
    JsonObject,
    Meta,
    Result,
    Role,
    RootsCapability,
    SamplingCapability,
    WireStruct,
)
from modes_actor.wire.content import SamplingContent
from modes_actor.wire.tools import Tool


class Root(WireStruct):
    uri: str
    name: str | None = None
    meta: Meta | None = field(default=None, name="_meta")


class ListRootsResult(WireStruct):
    roots: list[Root]


class ModelHint(WireStruct):
    name: str | None = None


class ModelPreferences(WireStruct):
    hints: list[ModelHint] | None = None
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None


class SamplingMessage(WireStruct):
    role: Role
    content: SamplingContent | list[SamplingContent]
    meta: Meta | None = field(default=None, name="_meta")


class ToolChoice(WireStruct):
    mode: Literal["auto", "required", "none"] | None = None


class CreateMessageParams(WireStruct):
    messages: list[SamplingMessage]
    max_tokens: int
    system_prompt: str | None = None
    model_preferences: ModelPreferences | None = None
    include_context: Literal["none", "thisServer", "allServers"] | None = None
    temperature: float | None = None
    stop_sequences: list[str] | None = None
    metadata: JsonObject | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None


class CreateMessageResult(WireStruct):
    role: Role
    content: SamplingContent | list[SamplingContent]
    model: str
    stop_reason: str | None = None


class StringSchema(WireStruct, tag_field="type", tag="string"):
    title: str | None = None
    description: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    format: Literal["email", "uri", "date", "date-time"] | None = None
    default: str | None = None


class NumberSchema(WireStruct, tag_field="type", tag="number"):
    title: str | None = None
    description: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    default: float | None = None


class IntegerSchema(WireStruct, tag_field="type", tag="integer"):
    title: str | None = None
    description: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    default: int | None = None


class BooleanSchema(WireStruct, tag_field="type", tag="boolean"):
    title: str | None = None
    description: str | None = None
    default: bool | None = None


class ChoiceSchema(WireStruct, tag_field="type", tag="string"):
    """One of a few strings, without titles: the form of choice that every version with elicitation knows."""

    enum: list[str]
    title: str | None = None
    description: str | None = None
    default: str | None = None


PropertySchema = StringSchema | NumberSchema | IntegerSchema | BooleanSchema | ChoiceSchema


class FormSchema(WireStruct, tag_field="type", tag="object"):
    # The value type is open only because msgspec cannot tell two Structs of one tag apart when reading; we only write.
    properties: dict[str, Any]
    required: list[str] | None = None


class ElicitFormParams(WireStruct):
    message: str
    requested_schema: FormSchema


class ElicitUrlParams(WireStruct, tag_field="mode", tag="url"):
    """`elicitation_id` is required by 2025-11-25 and gone from 2026-07-28."""

    message: str
    url: str
    elicitation_id: str | None = None


class ElicitResult(WireStruct):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class ListRoots(WireStruct):
    """Which directories the client works in."""

    method: ClassVar[str] = "roots/list"
    result: ClassVar[type[ListRootsResult]] = ListRootsResult
    params: UnsetType = UNSET

    def needs(self) -> ClientCapabilities:
        return ClientCapabilities(roots=RootsCapability())


class CreateMessage(WireStruct):
    """Have the client's model write a message."""

    method: ClassVar[str] = "sampling/createMessage"
    result: ClassVar[type[CreateMessageResult]] = CreateMessageResult
    params: CreateMessageParams

    def needs(self) -> ClientCapabilities:
        uses_tools = self.params.tools is not None or self.params.tool_choice is not None
        return ClientCapabilities(sampling=SamplingCapability(tools={} if uses_tools else None))


class Elicit(WireStruct):
    """Ask the person in front of the client."""

    method: ClassVar[str] = "elicitation/create"
    result: ClassVar[type[ElicitResult]] = ElicitResult
    params: ElicitFormParams | ElicitUrlParams

    def needs(self) -> ClientCapabilities:
        # An empty declaration means forms only, so a form needs no more than the word itself.
        url: JsonObject | None = {} if isinstance(self.params, ElicitUrlParams) else None
        return ClientCapabilities(elicitation=ElicitationCapability(url=url))


ClientRequest = ListRoots | CreateMessage | Elicit
ClientResult = ListRootsResult | CreateMessageResult | ElicitResult


class InputRequest(WireStruct):
    """A `ClientRequest` as it travels inside an `InputRequiredResult`."""

    method: str
    params: Any = UNSET


class InputRequiredResult(Result):
    """Not done yet: the client answers these and sends the request again (stateless era)."""

    input_requests: dict[str, InputRequest] | None = None
    request_state: str | None = None
