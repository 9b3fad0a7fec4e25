"""Connections that ask for nothing: they end soon, and leave room for those that ask."""

import asyncio
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

# How long the head of a request may take, and a connection without a request may stay.
HEAD_S = 10.0
# A browser keeps six connections to a server. More of one address may be visitors behind one. All
# addresses together leave room for requests below the server's limit.
WAITING_OF_AN_ADDRESS, WAITING = 32, 96


class LimitedProtocol(H11Protocol):
    """HTTP of one connection, whose peer has a limited time for the head of each request.

    Of one address, and of all, a number of connections may wait for a request. One more ends the
    one that has waited longest: so silent peers keep no visitor out.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and make room."""
        super().connection_made(transport)
        self._expect_head()
        known = cast("set[LimitedProtocol]", self.connections)
        waiting = sorted((it for it in known if it.waits), key=lambda it: it.waits_since_s)
        own = [it for it in waiting if it.address == self.address]
        for oldest in {*waiting[:-WAITING], *own[:-WAITING_OF_AN_ADDRESS]}:
            oldest.transport.abort()
            # The loop tells it later, and the place is free now.
            self.connections.discard(oldest)

    def on_response_complete(self) -> None:
        """End a response, and wait for the next request."""
        super().on_response_complete()
        self._expect_head()

    @property
    def waits(self) -> bool:
        """Whether no request is being answered."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    @property
    def address(self) -> str:
        """That of the peer."""
        return self.client[0] if self.client else ""

    def _expect_head(self) -> None:
        # By the clock of the loop.
        self.waits_since_s = self.loop.time()
        self.loop.call_later(HEAD_S, self._end_if_silent, self.cycle)

    def _end_if_silent(self, last: object) -> None:
        if self.cycle is last and not self.transport.is_closing():
            self.transport.abort()
