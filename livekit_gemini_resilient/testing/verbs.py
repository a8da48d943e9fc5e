"""What a test can make the server do: faults, barriers and the caller's part.

Every docstring says whether the real service does it, and how that is known.
"""

from __future__ import annotations

from typing import Any

from .faults import Barrier, Refusals, Trap
from .intake import Intake
from .judging import Judge
from .link import Link
from .records import Connection


class Verbs(Judge):
    """The verbs. Those that act on a connection take the current one unless told otherwise."""

    # The conversation.

    async def caller_says(
        self, text: str, *, infer: bool = True, connection: Connection | None = None
    ) -> None:
        """Let the caller say something, as server-side activity detection hears it.

        Sends the words as ``inputTranscription`` (recorded; the profile says in which form), if the
        setup asked for it; then the model answers. If it was speaking it is interrupted first
        (recorded on 2.5), unless the setup says ``NO_INTERRUPTION``; while a blocking call is open
        the words wait for the end of the turn (inferred), or cancel it (documented for 3.8). Under
        manual activity detection the answer comes at ``activityEnd``.

        Args:
            text: the words.
            infer: whether the model answers; ``False`` leaves the words heard and unanswered.
            connection: where; the current one by default.
        """
        self._intake(connection).caller_says(text, infer=infer)

    async def interrupt(
        self, *, turn_complete: bool = True, connection: Connection | None = None
    ) -> None:
        """Let the caller barge in: ``interrupted``, then ``turnComplete``.

        Real: each is a message of its own (recorded on 2.5, after ``generationComplete``), and no
        ``generationComplete`` follows (observed, documented). ``interrupted`` may also arrive while
        the model is idle (observed). Calls stay open.

        Args:
            turn_complete: whether ``turnComplete`` follows; it was seen to be late or missing.
            connection: where; the current one by default.
        """
        model = self._intake(connection).model
        model.interrupt(turn_complete=turn_complete)
        model.take_queue()

    async def answer_unasked(self, *, connection: Connection | None = None) -> None:
        """Let the model go on by itself with what it knows, as if the caller had just said it.

        Not known to be real: a model that was resumed from before a call may make the call again
        without having been asked anything new (inferred).

        Args:
            connection: where; the current one by default.
        """
        self._intake(connection).model.hear(None, "caller")

    async def cancel_calls(
        self, *names: str, interrupted: bool = False, connection: Connection | None = None
    ) -> None:
        """Take open calls back with ``toolCallCancellation``.

        Real (documented): sent when the caller interrupts a turn with open calls. If none stays
        open the turn goes on where at least one was answered, and is completed otherwise
        (inferred).

        Args:
            names: of the functions; all open calls if none is given.
            interrupted: whether ``interrupted`` is sent first, as in a barge-in.
            connection: where; the current one by default.

        Raises:
            RuntimeError: no such call is open.
        """
        model = self._intake(connection).model
        calls = [call for call in model.calls.open if not names or call.name in names]
        if not calls:
            raise RuntimeError("there is no open call to cancel")
        model.cancel(calls, interrupted=interrupted)

    async def issue_handle(self, *, connection: Connection | None = None) -> str:
        """Issue a resumption handle now, whatever the profile's cadence and the setup say.

        It covers what the model knows; open calls are left out unless the profile's
        ``resume_keeps_pending_call`` says otherwise. Real while idle (observed); Vertex is reported
        to issue handles even within an answer (observed; see ``handle_mid_answer``).

        Returns:
            The handle.
        """
        handle = self._intake(connection).model.issue_handle(always=True)
        assert handle is not None
        return handle

    async def not_resumable(
        self, *, empty: bool = False, connection: Connection | None = None
    ) -> None:
        """Send an update that carries no usable handle; earlier handles stay good.

        Real: ``resumable: false`` while the model generates or waits for a call (documented,
        observed on 3.1); an update without fields at the start of sessions (observed).

        Args:
            empty: whether the update has no fields, rather than ``resumable: false``.
            connection: where; the current one by default.
        """
        update = {} if empty else {"resumable": False}
        await self.send({"sessionResumptionUpdate": update}, connection=connection)

    async def forget_handles(self) -> None:
        """Refuse every handle issued so far, with 1007. No breach: a client cannot know.

        Real: a rejected resume was seen once, on 3.8, with that code (observed). For handles that
        run out by themselves see the profile's ``handle_ttl``.
        """
        self._service.handles.forget()

    async def poison_handles(self) -> None:
        """Spoil every handle issued so far: what is resumed from one hears, and never speaks.

        The words of the caller are transcribed and learnt, content is learnt, and nothing follows.
        Real (observed on 3.1, where a checkpoint was taken in mid-turn; 3.8 was seen silent after a
        resume as well).
        """
        self._service.handles.poison()

    async def send(self, message: dict[str, Any], *, connection: Connection | None = None) -> None:
        """Send any message, in the wire's camelCase. Changes nothing in the model."""
        self._link(connection).send(message)

    async def send_raw(self, payload: bytes | str, *, connection: Connection | None = None) -> None:
        """Send a binary (``bytes``) or text (``str``) websocket message of any content.

        Not known to be real: for clients that must survive what they cannot read.
        """
        self._link(connection).send_raw(payload)

    # Faults.

    async def drop(
        self, code: int = 1011, reason: str = "", *, connection: Connection | None = None
    ) -> None:
        """Close the connection with a close code.

        Real (observed): 1000, 1007, 1008 and 1011 at any time, also at the end of a connection's
        lifetime. For 1006 use `abort`.
        """
        self._link(connection).close(code, reason)

    async def abort(
        self,
        *,
        half_of: dict[str, Any] | None = None,
        connection: Connection | None = None,
    ) -> None:
        """Cut the TCP connection without a close frame.

        Real (observed): networks and proxies do it; the client sees 1006.

        Args:
            half_of: a message of which the first half is still sent, and then the end of the
                stream; without it, TCP is reset.
            connection: which; the current one by default.
        """
        self._link(connection).abort(half_of)

    async def go_away(self, time_left: float, *, connection: Connection | None = None) -> None:
        """Announce that the connection will end; nothing follows by itself.

        Real (observed): notices of 30, 50, 60 and 300 s, after which the service closes, or is
        silent first.

        Args:
            time_left: seconds.
            connection: which; the current one by default.
        """
        await self.send({"goAway": {"timeLeft": f"{time_left:g}s"}}, connection=connection)

    async def stall(self, *, connection: Connection | None = None) -> None:
        """Stop the running turn, in mid-sentence or while it waits for answers. The socket stays
        open, nothing says that the turn is over, and the next input is answered.

        Real (observed): replies freeze in mid-sentence on 2.5 and 3.1. To stand in mid-sentence
        while the test acts, give the step a gate.
        """
        self._intake(connection).model.stall()

    async def mute(self, *, connection: Connection | None = None) -> None:
        """Stall, and never react to a frame again. What arrives is recorded, not judged; pings and
        a close frame are answered.

        Real (observed): the service goes silent after ``goAway``.
        """
        self._link(connection).mute()

    def drop_on(
        self,
        kind: str,
        code: int | None = 1011,
        *,
        reason: str = "",
        after: bool = False,
        holding: str = "",
        times: int | None = 1,
    ) -> Trap:
        """Break the connection when the next frame of a kind arrives, on any connection.

        Real in effect (observed): connections end at any moment, and with 1007 or 1008 for a frame
        that is refused; a server that refuses certain words for ever is an assumption (control
        characters are observed). `verify` objects to a trap that has not sprung; `Trap.take_back`
        says that it need not.

        Args:
            kind: ``"tool_response"``, ``"client_content"``, ``"context_update"``, ``"setup"``,
                ``"realtime_input"`` or one of its fields as in ``"realtime_input.text"``.
            code: close code; ``None`` resets TCP.
            reason: in the close frame.
            after: ``False`` breaks it before the frame is taken in; ``True`` takes it in (a
                response is accepted, text is learnt) and breaks before any reaction.
            holding: words that the frame must hold.
            times: how often; ``None`` for ever.

        Returns:
            The trap; its ``sprung`` is an event set when it has happened.

        Raises:
            ValueError: there is no such kind.
        """
        trap = Trap(kind=kind, code=code, reason=reason, after=after, holding=holding, times=times)
        self._faults.traps.append(trap)
        return trap

    # Barriers.

    def holding_closes(self) -> Barrier:
        """Hold the answer to a client's close frame while the ``async with`` block runs.

        Real (observed): a close handshake takes 1.4 to 3 s, during which a resume is refused.
        ``reached()`` returns when the client's close frame has arrived.
        """
        self._faults.closes = Barrier(self.until, "a client's close frame")
        return self._faults.closes

    def holding_dials(self) -> Barrier:
        """Hold the answer to setups while the ``async with`` block runs.

        Real (observed): a setup may stay unanswered for ever. ``reached()`` returns when the setup
        has arrived.
        """
        self._faults.dials = Barrier(self.until, "a setup to be held")
        return self._faults.dials

    def holding_pongs(self) -> Barrier:
        """Hold the answers to pings while the ``async with`` block runs.

        Real (observed on 3.8): pongs take 8 to 30 s. ``reached()`` returns when a ping has come.
        """
        self._faults.pongs = Barrier(self.until, "a ping")
        return self._faults.pongs

    def refusing_dials(
        self,
        times: int | None = None,
        code: int = 1011,
        reason: str = "The service is currently unavailable.",
    ) -> Refusals:
        """Refuse dials while the ``async with`` block runs.

        Real (observed): 1011 on backend faults, HTTP 429 and 403 on the upgrade.

        Args:
            times: how many; ``None`` for as long as the block runs.
            code: a close code, sent in answer to the setup, or an HTTP status below 1000, sent in
                answer to the upgrade.
            reason: in the close frame, or the body of the HTTP answer.
        """
        self._faults.refusals = Refusals(self.until, times=times, code=code, reason=reason)
        return self._faults.refusals

    def _link(self, connection: Connection | None) -> Link:
        wanted = connection or self.current
        for link in self._links:
            if link.record is wanted and link.record.closed is None:
                return link
        raise RuntimeError(self._journal.story("no connection is open"))

    def _intake(self, connection: Connection | None) -> Intake:
        intake = self._link(connection).intake
        if intake is None:
            raise RuntimeError("the connection's setup has not been answered")
        return intake
