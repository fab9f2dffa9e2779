"""A virtual client of the load test and a server that says what a test puts into its mouth."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tests.conversation import Json
from tests.scripts import script

answers, clients, histograms = script("load_answers"), script("load_client"), script("load_histogram")
lists, mixes, pipes, projects = script("load_lists"), script("load_mix"), script("load_pipe"), script("load_project")

TIMEOUT = 60.0
SERVER = {"io.modelcontextprotocol/serverInfo": {"name": "a server", "version": "1"}}


class Bench:
    """One client, and what was found out about its server."""

    def __init__(self, *, is_stateless: bool = False) -> None:
        self.findings = pipes.Findings()
        self.measured = pipes.Measured()
        place = projects.Place(Path("/no/such/place"), "no-such-server", TIMEOUT)
        self.pipe = pipes.Pipe(place, self.measured, self.findings, patience=1.0)
        self.known = clients.Known(TIMEOUT, answers.Repeated())
        self.now = 1_000.0
        self.client = self.another(0, is_stateless=is_stateless)

    def another(self, number: int, *, is_stateless: bool = False) -> Any:
        """One more client on the same pipe."""
        mix = mixes.mix_of(is_stateless=is_stateless)
        client = clients.VirtualClient(
            number, is_stateless=is_stateless, seed=1, line=self.pipe, known=self.known, mix=mix
        )
        client.now = client.intended = self.now
        return client

    def ask(self, ask: Callable[[Any], object], client: Any = None) -> Json:
        """Let the client ask; return the request."""
        client = client or self.client
        client.now = client.intended = self.now
        ask(client)
        return self.asked[-1]

    @property
    def asked(self) -> list[Json]:
        """All requests that are open."""
        return [msgspec.json.decode(sent.line) for sent in self.pipe.pending.values()]

    def say(self, *messages: Json | bytes) -> dict[str, int]:
        """Let the server say this; return how often which promises are broken by now."""
        lines = [each if isinstance(each, bytes) else msgspec.json.encode(each) for each in messages]
        self.pipe.take_block(b"".join(line + b"\n" for line in lines), self.now)
        return dict(self.findings.counts)

    def give_task(self, client: Any = None, session: str = "1") -> str:
        """Let the client create a task, and be answered rightly; return the session."""
        request = self.ask(mixes.create_task, client)
        session_id = f"sess_{session:0>32}"
        self.say(created(request, session_id))
        return session_id


def answer(request: Json, result: Any) -> Json:
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def error(request: Json, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}}


def stateless(result: Json, **more: Any) -> Json:
    return {**result, "resultType": "complete", "_meta": SERVER, **more}


def tool(told: Any, text: str = "", **more: Any) -> Json:
    return {"content": [{"type": "text", "text": text}], "structuredContent": told, **more}


def created(request: Json, session_id: str, **other: str) -> Json:
    """The answer to `create_task`."""
    told = {
        "session_id": session_id,
        "task_id": f"task_{session_id[-12:]}",
        "mode_slug": request["params"]["arguments"]["mode_slug"],
        **other,
    }
    return answer(request, tool({**told, "state": "active"}, metadata=told))


def update(session_id: str, stream: Any = None) -> Json:
    params: Json = {"uri": f"task://{session_id}"}
    if stream is not None:
        params["_meta"] = {"io.modelcontextprotocol/subscriptionId": stream}
    return {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params}
