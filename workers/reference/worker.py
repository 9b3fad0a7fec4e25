"""The reference worker: the whole worker protocol in the plain standard library.

A template for a new language, documentation that runs, and a double for tests. One connection,
text protocol, closed loop. PROTOCOL.md tells the messages, docs/tape.md the tape.

    tape.py        what the tape holds, and the request of each operation
    connection.py  one operation on the wire: the part that a client library takes the place of
    player.py      the loop that is measured, and what it counts
    histogram.py   how times travel
    worker.py      requests in, answers out
"""

import itertools
import json
import platform
import sys
import threading
from queue import SimpleQueue
from typing import Any

from player import Player
from tape import KINDS, Tape, TapeError

Message = dict[str, Any]


class Worker:
    """Answers requests: each calls the method of its name with the request's fields."""

    def __init__(self, inbox: SimpleQueue[Message]) -> None:
        self.inbox = inbox
        self.player: Player | None = None

    def hello(self, **_: Any) -> Message:
        runtime = f"{platform.python_implementation()} {platform.python_version()}"
        return {"type": "ready", "protocol": 1, "client": "reference", "library": "none",
                "library_version": "1", "language": "python", "runtime": runtime,
                "capabilities": ["text", *KINDS]}  # fmt: skip

    def prepare(
        self, *, tape: str, servers: list[str], segment: tuple[int, int] = (0, 1),
        wire: str = "text", timeout_ms: int = 1000, options: Message | None = None, **amounts: int,
    ) -> Message:  # fmt: skip
        read = Tape(tape)
        if unknown := sorted(read.kinds(segment) - set(KINDS)):
            return unsupported(f"no operation {', '.join(unknown)}")
        if wire != "text" or read.open_loop or options:
            return unsupported("text protocol and closed loop only, no options")
        if len(servers) != 1 or servers[0].startswith("unix:"):
            return unsupported("one server only, by TCP")
        if any(amount > 1 for amount in amounts.values()):
            return unsupported("one connection, and one operation at a time")
        self.player = Player(read, segment, servers[0], timeout_ms / 1e3)
        return {"type": "ready"}

    def run(self, **request: Any) -> Message:
        if self.player is None:
            return failure("protocol", "run before prepare")
        # Whatever is said during a run ends it: a stop, a bye, the end of stdin.
        return self.player.run(**request, stopped=lambda: not self.inbox.empty(), tell=tell)

    def stop(self) -> None:
        """It has done what it does by being there; a stop outside a run has no answer."""


def unsupported(reason: str) -> Message:
    return {"type": "unsupported", "reason": reason}


def failure(kind: str, text: str) -> Message:
    return {"type": "error", "kind": kind, "text": text, "definite": True}


def tell(message: Message) -> None:
    print(json.dumps(message), flush=True)


def listen(inbox: SimpleQueue[Message]) -> None:
    for line in itertools.chain(sys.stdin, ['{"type": "bye"}']):
        inbox.put(json.loads(line))


def answer(worker: Worker, request: Message) -> Message | None:
    """The answer to one request. A mistake of ours is told as one, never as a silence."""
    try:
        return getattr(worker, request.pop("type"))(**request)
    except TapeError as error:
        return failure("tape", str(error))
    except OSError as error:
        return failure("connect", str(error))
    except Exception as error:
        return failure("internal", repr(error))


def main() -> None:
    inbox: SimpleQueue[Message] = SimpleQueue()
    threading.Thread(target=listen, args=[inbox], daemon=True).start()
    worker = Worker(inbox)
    while (request := inbox.get())["type"] != "bye":
        if message := answer(worker, request):
            tell(message)


if __name__ == "__main__":
    main()
