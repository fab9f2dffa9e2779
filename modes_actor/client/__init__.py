"""A typed client: starts a server, or takes a pair of streams, and turns answers into Structs and exceptions.

    async with start_server(project_root=".") as client:
        task = await client.create_task("architect", "Plan the release")

Promises: a call ends with its answer, an exception or its cancellation, and never waits for a server that has gone;
calls may overlap, and each gets its own answer; a frame is sent whole or not at all; leaving the block leaves no task,
no child and no descriptor behind. Each of the seven tools has a method; everything else works with any MCP server.
"""

from modes_actor.client.connecting import connect, start_server
from modes_actor.client.conversation import INPUT_ROUNDS, Options, ServerDescription
from modes_actor.client.failures import (
    BadAnswer,
    CallFailed,
    FileRestricted,
    ModeNotFound,
    ServerError,
    ServerGone,
    SessionExpired,
    TaskNotFound,
    ToolFailed,
    ToolRestricted,
    ToolResult,
    ValidationFailed,
)
from modes_actor.client.requests import Client

__all__ = [
    "INPUT_ROUNDS",
    "BadAnswer",
    "CallFailed",
    "Client",
    "FileRestricted",
    "ModeNotFound",
    "Options",
    "ServerDescription",
    "ServerError",
    "ServerGone",
    "SessionExpired",
    "TaskNotFound",
    "ToolFailed",
    "ToolRestricted",
    "ToolResult",
    "ValidationFailed",
    "connect",
    "start_server",
]
