"""The server with one thing wrong: every `logging/setLevel` is answered as if it had failed inside.

For tests of those who should notice. The arguments are the real one's.
"""

from typing import Any

from modes_actor.actor.outgoing import Outgoing
from modes_actor.cli import main
from modes_actor.surface import logging
from modes_actor.wire.base import EmptyResult
from modes_actor.wire.jsonrpc import ErrorObject, ErrorResponse, Response


class _Failed(EmptyResult):
    pass


def go_wrong() -> None:
    post = Outgoing.post

    def wrong(self: Outgoing, message: Any) -> None:
        if isinstance(message, Response) and isinstance(message.result, _Failed):
            message = ErrorResponse(message.id, ErrorObject(-32603, "it failed"))
        post(self, message)

    Outgoing.post = wrong  # type: ignore[method-assign]
    logging.set_level = lambda params, context: _Failed()


if __name__ == "__main__":
    go_wrong()
    raise SystemExit(main())
