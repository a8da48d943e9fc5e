"""Which parts has a conversation, and which of them know one another?

``assemble`` is the one place where they are made. The modules that tie them together share them:
``reception`` (what the server's frames change), ``succession`` (what one connection leaves to the
next), ``changes`` (of the setup), ``floor`` (what may be written) and ``conversation`` (everything
else that happens, and in which order things are written).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..options import ResilienceOptions
from .asking import Asking
from .audience import Audience
from .behaviour import Observed
from .caller import Caller
from .delivery import Ledger
from .history import History
from .intake import Intake
from .link import Link
from .prompts import Prompts
from .requests import Requests
from .rotation import RestartWhen, Rotation
from .speech import Speech
from .suspects import Suspects
from .telling import Telling
from .transitions import Transitions
from .turn import TurnTracker
from .uplink import Uplink


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of one conversation; each answers the question at the head of its module."""

    options: ResilienceOptions
    """Times and limits."""
    observed: Observed
    """What this server is known to do."""
    link: Link
    """The connection, and what its setup declares."""
    ledger: Ledger
    """Calls and results."""
    history: History
    """What the model knows of the conversation."""
    intake: Intake
    """The chat context."""
    turn: TurnTracker
    """Whose turn it is."""
    speech: Speech
    """What the framework is shown."""
    prompts: Prompts
    """Words of ours."""
    requests: Requests
    """The ``generate_reply`` under way."""
    suspects: Suspects
    """What may have closed a connection."""
    asking: Asking
    """What the model is asked for."""
    telling: Telling
    """How results are told."""
    transitions: Transitions
    """Calls whose effect is another prompt or agent."""
    rotation: Rotation
    """Restarts that wait."""
    audience: Audience
    """Whether anybody listens."""
    caller: Caller
    """Whether the caller is heard to speak."""
    uplink: Uplink
    """The caller's audio and video."""


def assemble(
    options: ResilienceOptions,
    *,
    link: Link,
    observed: Observed,
    new_id: Callable[[str], str],
    may_stay_silent: bool,
    final_at_reply: bool,
) -> Parts:
    """Make the parts of one conversation; the arguments are those of ``Conversation``."""
    ledger, history, requests, prompts = Ledger(), History(), Requests(), Prompts(observed)
    suspects = Suspects()
    asking = Asking(
        options=options,
        ledger=ledger,
        requests=requests,
        prompts=prompts,
        settings=link.settings,
        may_stay_silent=may_stay_silent,
        suspects=suspects,
    )
    speech = Speech(
        ledger=ledger,
        history=history,
        requests=requests,
        asking=asking,
        new_id=new_id,
        settings=link.settings,
        final_at_reply=final_at_reply,
    )
    telling = Telling(
        options=options,
        ledger=ledger,
        history=history,
        prompts=prompts,
        observed=observed,
        speech=speech,
        settings=link.settings,
        suspects=suspects,
    )
    return Parts(
        options=options,
        observed=observed,
        link=link,
        ledger=ledger,
        history=history,
        intake=Intake(max_result_bytes=options.max_result_bytes),
        turn=TurnTracker(
            trailing_quiet=options.trailing_quiet,
            transcript_grace=options.transcript_grace,
            stalled_after=options.reply_timeout,
        ),
        speech=speech,
        prompts=prompts,
        requests=requests,
        suspects=suspects,
        asking=asking,
        telling=telling,
        transitions=Transitions(
            names=options.transition_names,
            quiet=options.trailing_quiet,
            patience=options.max_defer,
        ),
        rotation=Rotation(
            when=RestartWhen(options.restart_when),
            max_defer=options.max_defer,
            margin=options.go_away_margin,
            max_age=options.max_connection_age,
        ),
        audience=Audience(patience=options.reply_timeout),
        caller=Caller(patience=options.max_defer),
        uplink=Uplink(max_seconds=options.input_buffer),
    )
