"""What is sent without an answer: cancellation, progress, log messages, changes; and `logging/setLevel`, `…/listen`."""

from typing import Any, Final

from modes_actor.wire.base import (
    LogLevel,
    NotificationParams,
    Params,
    ProgressToken,
    Result,
    WireStruct,
)
from modes_actor.wire.jsonrpc import RequestId

INITIALIZED: Final = "notifications/initialized"
CANCELLED: Final = "notifications/cancelled"
PROGRESS: Final = "notifications/progress"
MESSAGE: Final = "notifications/message"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
PROMPTS_CHANGED: Final = "notifications/prompts/list_changed"
RESOURCES_CHANGED: Final = "notifications/resources/list_changed"
RESOURCE_UPDATED: Final = "notifications/resources/updated"
ROOTS_CHANGED: Final = "notifications/roots/list_changed"
LISTEN_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

LOG_LEVELS: Final[tuple[LogLevel, ...]] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
"""Least to most severe."""


class CancelledParams(NotificationParams):
    request_id: RequestId
    reason: str | None = None


class ProgressParams(NotificationParams):
    progress_token: ProgressToken
    progress: float
    total: float | None = None
    message: str | None = None


class LogMessageParams(NotificationParams):
    level: LogLevel
    data: Any
    logger: str | None = None


class ResourceUpdatedParams(NotificationParams):
    uri: str


class SetLevelParams(Params):
    level: LogLevel


class SubscriptionFilter(WireStruct):
    """Which changes a listener wants to hear of, or (in the acknowledgement) will hear of."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None


class ListenParams(Params):
    notifications: SubscriptionFilter


class ListenAcknowledgedParams(NotificationParams):
    notifications: SubscriptionFilter


class ListenResult(Result):
    """A subscription ended because the server is going away. Its id is in `_meta`."""
