"""The queue of a thread as facts: each says of one turn that it came, went first, or was taken out.

One fact a turn, so that a long queue costs no more than a short one and nobody who changes it has
to know the rest. What a turn was asked is held here too; after a restart it is read back.
"""

from typing import Any

from factwire.facts import Fact, read_input
from factwire.journal import Journal
from factwire.journal.blobs import BlobStore
from factwire.projection.queue import QueuedTurn
from factwire.runtime.errors import UnknownTurn
from factwire.runtime.identity import Identity
from factwire.runtime.minting import Mint, Scope
from factwire.runtime.submission import Submission, queued
from factwire.runtime.thread_log import ThreadLog


class TurnQueue:
    """Makes the facts of one thread's queue; whoever asks for them writes them."""

    def __init__(
        self, log: ThreadLog, mint: Mint, journal: Journal, blobs: BlobStore, identity: Identity
    ) -> None:
        self._log = log
        self._mint = mint
        self._journal = journal
        self._blobs = blobs
        self._identity = identity
        self._asked: dict[str, Submission] = {}

    @property
    def turns(self) -> list[QueuedTurn]:
        """What waits, in order, as far as it is durable."""
        return self._log.projection.state.queue.turns

    def turn(self, turn_id: str) -> QueuedTurn:
        """A turn that waits; raises `UnknownTurn`."""
        for turn in self.turns:
            if turn.queued_turn_id == turn_id:
                return turn
        raise UnknownTurn(f"turn {turn_id} does not wait on thread {self._log.thread_id}")

    async def submission(self, turn_id: str) -> Submission:
        """What a turn that waits was asked to do."""
        known = self._asked.get(turn_id)
        if known is None:
            known = await queued(self._journal, self._blobs, self._log.thread_id, turn_id)
        return known or _from_row(self.turn(turn_id))

    def added(self, submission: Submission) -> Fact:
        """A turn waits behind all others."""
        return self.fact(submission, change="added")

    def first(self, submission: Submission, **said: Any) -> Fact:
        """A turn waits before all others, whether it waited before or not."""
        return self.fact(submission, change="promoted", **said)

    def removed(self, turn_id: str, **said: Any) -> Fact:
        """A turn waits no longer, and does not run."""
        self._asked.pop(turn_id, None)
        payload = {"queuedTurnId": turn_id, "change": "removed", **self._identity.claim(), **said}
        return self._mint.fact(self._scope(), "queue.changed", payload, queued_turn_id=turn_id)

    def left(self, turn_id: str) -> None:
        """A turn has started."""
        self._asked.pop(turn_id, None)

    def fact(self, submission: Submission, **said: Any) -> Fact:
        """What is said of a turn that waits; `said` are further fields of the payload."""
        self._asked[submission.turn_id] = submission
        fields = {name: said.pop(name) for name in ("control", "turn_id") if name in said}
        row: dict[str, Any] = {
            "queuedTurnId": submission.turn_id,
            **submission.payload(),
            "status": "queued",
            "projectId": submission.project_id,
            "notBefore": submission.not_before,
            **self._identity.claim(),
            **said,
        }
        payload = {name: value for name, value in row.items() if value is not None}
        scope = self._scope(submission)
        return self._mint.fact(
            scope, "queue.changed", payload, queued_turn_id=submission.turn_id, **fields
        )

    def _scope(self, submission: Submission | None = None) -> Scope:
        session = self._log.projection.state.session_id
        if submission is None:
            return Scope(session_id=session, thread_id=self._log.thread_id)
        return Scope(
            session_id=session or submission.session_id,
            thread_id=self._log.thread_id,
            trace_id=submission.trace_id,
        )


def _from_row(turn: QueuedTurn) -> Submission:
    """What a state still says of a turn whose fact was taken out of the journal."""
    return Submission(
        turn_id=turn.queued_turn_id,
        agent=turn.agent_id or "",
        prompt=turn.prompt or "",
        input=read_input(turn.input or []),
        options=turn.options or {},
        project_id=turn.project_id,
        workspace=turn.workspace,
        retry_of=turn.retry_of,
        attempt=turn.attempt or 1,
        not_before=turn.not_before,
    )
