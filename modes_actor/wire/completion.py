"""`completion/complete`: values for a prompt's or a resource template's argument, while a person types."""

from modes_actor.wire.base import Params, Result, WireStruct


class PromptReference(WireStruct, tag_field="type", tag="ref/prompt"):
    name: str
    title: str | None = None


class ResourceTemplateReference(WireStruct, tag_field="type", tag="ref/resource"):
    uri: str


class CompletionArgument(WireStruct):
    name: str
    value: str


class CompletionContext(WireStruct):
    arguments: dict[str, str] | None = None


class CompleteParams(Params):
    ref: PromptReference | ResourceTemplateReference
    argument: CompletionArgument
    context: CompletionContext | None = None


class Completion(WireStruct):
    """At most 100 values: the protocol's own limit."""

    values: list[str]
    total: int | None = None
    has_more: bool | None = None


class CompleteResult(Result):
    completion: Completion
