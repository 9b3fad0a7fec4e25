"""The one task that agents do: answer a request.

Dask calls it by its name, so a request carries no code.
"""

from __future__ import annotations

import msgspec

from cachemark.agents import messages
from cachemark.agents.messages import HostAnswer, HostFailure
from cachemark.agents.session import Session
from cachemark.model.errors import DECODE_ERRORS, TrialError, UsageError


class _Current:
    """The session of this process. A task cannot be handed an object that lives here."""

    session: Session | None = None


def use_session(session: Session | None) -> None:
    """Let tasks of this process use a session."""
    _Current.session = session


def perform(request: bytes) -> bytes:
    """Answer one request: the value, or the error that a user can mend."""
    return messages.encode(_answer(request))


def _answer(request: bytes) -> HostAnswer:
    try:
        if _Current.session is None:
            raise TrialError("this process is no agent")
        value = _Current.session.perform(messages.decode_request(request))
    except (UsageError, TrialError) as error:
        return HostAnswer(failure=HostFailure.of(error))
    except (OSError, *DECODE_ERRORS) as error:
        return HostAnswer(failure=HostFailure(text=f"{type(error).__name__}: {error}"))
    return HostAnswer(value=msgspec.Raw(messages.encode(value)))
