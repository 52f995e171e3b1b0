"""What people ask of a thread: a turn now, a turn that waits in the queue, or a steer of the
turn that runs.

A submission's turn id, like a steer's id, is the key by which it is done once. Queue and steers
live in the journal as facts.
"""

import asyncio
from typing import Any, Final, Literal, cast

import msgspec

from factwire.facts import Fact, InputPart, Person, Ref, read_input, to_person, write_input
from factwire.facts.resources import SteerStatus
from factwire.facts.spill import json_characters
from factwire.journal import Filter, Journal
from factwire.journal.blobs import BlobStore
from factwire.projection.thread_status import QueuedTurn, Steer
from factwire.runtime.errors import QueueFull, SteerTooLong, UnknownTurn
from factwire.runtime.limits import PENDING_STEERS, STEER_CHARACTERS
from factwire.runtime.mint import FactScope, Mint
from factwire.runtime.provider import DeliveredSteer
from factwire.runtime.runtime_identity import Identity
from factwire.runtime.thread_log import ThreadLog

SubmissionStatus = Literal["started", "queued", "known"]

HELD: Final = "held"
"""The status of a turn that waits and does not start by itself."""

_REF: Final = "Ref"
_WHOLE: Final = "payloadRef"


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """One turn to be run. `workspace` is a real path, and `worktree` says of which commit of which
    repository it was made for the turn, if it was; before `not_before` it does not start. Its facts
    carry `trace_id`, that of the request; `by` is who asked. `created_at` is when it was asked for,
    once that is on record.
    """

    turn_id: str
    agent: str
    prompt: str
    input: tuple[InputPart, ...] = ()
    options: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    session_id: str | None = None
    project_id: str | None = None
    workspace: str | None = None
    worktree: dict[str, str] | None = None
    retry_of: str | None = None
    attempt: int = 1
    not_before: str | None = None
    trace_id: str | None = None
    created_at: str | None = None
    by: Person | None = None

    def payload(self) -> dict[str, Any]:
        """What facts say about it."""
        payload: dict[str, Any] = {
            "prompt": self.prompt,
            "agentId": self.agent,
            "input": write_input(self.input) or None,
            "options": self.options or None,
            "workspace": self.workspace,
            "worktree": self.worktree,
            "retryOf": self.retry_of,
            "attempt": self.attempt if self.retry_of is not None else None,
            "createdAt": self.created_at,
            "by": None if self.by is None else msgspec.to_builtins(self.by),
        }
        return {name: value for name, value in payload.items() if value is not None}


class SubmissionReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a submission; `known` is one that came before and runs only once."""

    turn_id: str
    thread_id: str
    status: SubmissionStatus


class SteerReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a steer. It waits for the turn to take it (`pending`), was taken
    (`delivered`), or is a turn of its own with the steer's id, which was `started` or is `queued`.
    """

    steer_id: str
    thread_id: str
    turn_id: str
    status: SteerStatus


async def read_submission(
    journal: Journal, blobs: BlobStore, thread_id: str, turn_id: str
) -> Submission | None:
    """What a turn was asked to do, as the journal has it."""
    wanted = Filter(thread=thread_id, turn=turn_id, classes=("turn.submitted",))
    async for batch in journal.read(filter=wanted, limit=1):
        for _, fact in batch.facts():
            return _build_submission(fact, turn_id, await read_spilled_payload(blobs, fact.payload))
    return None


async def read_started_at(journal: Journal, thread_id: str, turn_id: str) -> str | None:
    """When a turn began to run; None for one that never did."""
    wanted = Filter(thread=thread_id, turn=turn_id, classes=("turn.started",))
    async for batch in journal.read(filter=wanted, limit=1):
        for _, fact in batch.facts():
            return fact.created_at
    return None


def build_run_times(submission: Submission, started_at: str | None) -> dict[str, str]:
    """What the start and the end of a turn say of the times before them."""
    times = {"createdAt": submission.created_at, "startedAt": started_at}
    return {name: time for name, time in times.items() if time is not None}


async def read_queued_submission(
    journal: Journal, blobs: BlobStore, thread_id: str, turn_id: str
) -> Submission | None:
    """What a turn that waits was asked to do: the last that was said of it counts."""
    found: Submission | None = None
    async for batch in journal.read(filter=Filter(thread=thread_id, classes=("queue.changed",))):
        for _, fact in batch.facts():
            for fields in _rows(fact, turn_id):
                payload = await read_spilled_payload(blobs, fields)
                if "prompt" in payload:
                    found = _build_submission(fact, turn_id, payload)
    return found


def _rows(fact: Fact, turn_id: str) -> list[dict[str, Any]]:
    """What a fact says of a queued turn: by itself, or among others in a list."""
    if fact.queued_turn_id == turn_id:
        return [fact.payload]
    rows = cast("list[dict[str, Any]]", fact.payload.get("queuedTurns") or [])
    return [row for row in rows if row.get("queuedTurnId") == turn_id]


async def read_spilled_payload(blobs: BlobStore, payload: dict[str, Any]) -> dict[str, Any]:
    """A payload with what was spilled from it."""
    if _WHOLE in payload:
        everything = await _content(blobs, payload[_WHOLE])
        return cast("dict[str, Any]", everything) if isinstance(everything, dict) else payload
    found = dict(payload)
    for name, value in payload.items():
        own = name.removesuffix(_REF)
        if own != name and own not in payload and isinstance(value, dict):
            found[own] = await _content(blobs, cast("dict[str, Any]", value))
    return found


async def _content(blobs: BlobStore, value: Any) -> object:
    ref = msgspec.convert(value, Ref)
    data = b"".join([piece async for piece in blobs.get(ref.ref)])
    if ref.media_type == "text/plain":
        return data.decode("utf-8", "surrogatepass")
    return msgspec.json.decode(data)


def _build_submission(fact: Fact, turn_id: str, payload: dict[str, Any]) -> Submission:
    return Submission(
        turn_id=turn_id,
        agent=str(payload.get("agentId") or fact.agent_id or ""),
        prompt=str(payload.get("prompt", "")),
        input=read_input(cast("list[Any]", payload.get("input", []))),
        options=cast("dict[str, Any]", payload.get("options", {})),
        session_id=fact.session_id,
        project_id=fact.project_id,
        workspace=cast("str | None", payload.get("workspace")),
        worktree=cast("dict[str, str] | None", payload.get("worktree")),
        retry_of=cast("str | None", payload.get("retryOf")),
        attempt=int(payload.get("attempt", 1)),
        not_before=cast("str | None", payload.get("notBefore")),
        trace_id=fact.trace_id,
        created_at=cast("str | None", payload.get("createdAt")) or fact.created_at,
        by=to_person(payload.get("by")),
    )


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
        self._submissions: dict[str, Submission] = {}

    @property
    def turns(self) -> list[QueuedTurn]:
        """What waits, in order, as far as it is durable."""
        return self._log.projection.state.queue.turns

    @property
    def next_turn(self) -> QueuedTurn | None:
        """The turn that starts next; one that is held does not start by itself."""
        return next((turn for turn in self.turns if turn.status != HELD), None)

    def turn(self, turn_id: str) -> QueuedTurn:
        """A turn that waits; raises `UnknownTurn`."""
        for turn in self.turns:
            if turn.queued_turn_id == turn_id:
                return turn
        raise UnknownTurn(f"turn {turn_id} is not queued on thread {self._log.thread_id}")

    async def submission(self, turn_id: str) -> Submission:
        """What a turn that waits was asked to do."""
        known = self._submissions.get(turn_id)
        if known is None:
            known = await read_queued_submission(
                self._journal, self._blobs, self._log.thread_id, turn_id
            )
        return known or _from_row(self.turn(turn_id))

    def build_added(self, submission: Submission) -> Fact:
        """A turn waits behind all others."""
        return self.build_fact(submission, change="added")

    def build_first(self, submission: Submission, **fields: Any) -> Fact:
        """A turn waits before all others, whether it waited before or not."""
        return self.build_fact(submission, change="promoted", **fields)

    def build_removed(self, turn_id: str, **fields: Any) -> Fact:
        """A turn waits no longer, and does not run."""
        self._submissions.pop(turn_id, None)
        return self._build_change(turn_id, change="removed", **fields)

    def build_steered(self, turn_id: str, into: str, by: Person | None) -> Fact:
        """A turn waits no longer, because another turn has taken what it was to be asked."""
        person = {} if by is None else {"by": msgspec.to_builtins(by)}
        return self.build_removed(turn_id, reason="steered", steeredInto=into, **person)

    def build_held(self, reason: str, by: Person | None = None) -> list[Fact]:
        """Facts by which everything that waits is held until a person releases it."""
        return [
            self._build_change(
                turn.queued_turn_id, change="held", status=HELD, reason=reason, **changed_by(by)
            )
            for turn in self.turns
            if turn.status != HELD
        ]

    def build_released(self, turn_id: str | None, by: Person | None = None) -> list[Fact]:
        """Facts by which a turn that is held, or every one, waits for its turn again."""
        return [
            self._build_change(
                turn.queued_turn_id, change="released", status="queued", **changed_by(by)
            )
            for turn in self.turns
            if turn.status == HELD and turn_id in (None, turn.queued_turn_id)
        ]

    def _build_change(self, turn_id: str, **fields: Any) -> Fact:
        payload = {"queuedTurnId": turn_id, **self._identity.claim(), **fields}
        for turn in self.turns:
            if turn.queued_turn_id == turn_id and turn.queued_at is not None:
                payload["createdAt"] = turn.queued_at
        return self._mint.fact(self._scope(), "queue.changed", payload, queued_turn_id=turn_id)

    def mark_started(self, turn_id: str) -> None:
        """A turn has started."""
        self._submissions.pop(turn_id, None)

    def build_fact(self, submission: Submission, **details: Any) -> Fact:
        """The fact about a waiting turn; `details` are further fields of its payload."""
        asked_at = submission.created_at or self._mint.clock()
        submission = msgspec.structs.replace(submission, created_at=asked_at)
        self._submissions[submission.turn_id] = submission
        fields = {name: details.pop(name) for name in ("control", "turn_id") if name in details}
        row: dict[str, Any] = {
            "queuedTurnId": submission.turn_id,
            **submission.payload(),
            "status": "queued",
            "projectId": submission.project_id,
            "notBefore": submission.not_before,
            **self._identity.claim(),
            **details,
        }
        payload = {name: value for name, value in row.items() if value is not None}
        scope = self._scope(submission)
        return self._mint.fact(
            scope, "queue.changed", payload, queued_turn_id=submission.turn_id, **fields
        )

    def _scope(self, submission: Submission | None = None) -> FactScope:
        session = self._log.projection.state.session_id
        if submission is None:
            return FactScope(session_id=session, thread_id=self._log.thread_id)
        return FactScope(
            session_id=session or submission.session_id,
            thread_id=self._log.thread_id,
            trace_id=submission.trace_id,
        )


def changed_by(by: Person | None) -> dict[str, Any]:
    """Who held, released, moved or steered a turn, which may be another than who asked for it."""
    return {} if by is None else {"changedBy": msgspec.to_builtins(by)}


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
        created_at=turn.queued_at,
        by=turn.by,
    )


class Steers:
    """The steers of one thread."""

    def __init__(self, log: ThreadLog, mint: Mint, queue: TurnQueue) -> None:
        self._log = log
        self._mint = mint
        self._queue = queue
        self._inputs: dict[str, DeliveredSteer] = {}
        self._queued: dict[str, tuple[Submission, Person | None]] = {}
        """The queued turns that are steers now, and who made them so."""
        self._taken: set[str] = set()
        self._came = asyncio.Event()

    def find(self, steer_id: str) -> Steer | None:
        """A steer that was given before."""
        steers = reversed(self._log.projection.state.queue.steers)
        return next((steer for steer in steers if steer.steer_id == steer_id), None)

    def list_pending(self, turn_id: str) -> list[Steer]:
        """What waits for a turn to take it, in order."""
        return [
            steer
            for steer in self._log.projection.state.queue.steers
            if steer.turn_id == turn_id
            and steer.status == "pending"
            and steer.steer_id not in self._taken
        ]

    def list_delivered(self, turn_id: str) -> list[DeliveredSteer]:
        """What a turn has taken, as far as it can be told in full."""
        steers = self._log.projection.state.queue.steers
        return [
            self._read_whole(steer)
            for steer in steers
            if steer.turn_id == turn_id and steer.status == "delivered"
        ]

    async def add(self, scope: FactScope, steer: DeliveredSteer) -> None:
        """Write down a steer for a turn that runs."""
        await self._add(scope, steer, {}, {})

    async def turn_into_steer(
        self, scope: FactScope, submission: Submission, by: Person | None = None
    ) -> None:
        """Take a turn out of the queue and say it to the turn that runs, in one fact; `by` is who
        wanted that.
        """
        steer = DeliveredSteer(
            steer_id=submission.turn_id,
            text=submission.prompt,
            input=submission.input,
            by=submission.by,
        )
        fields = {"queued_turn_id": submission.turn_id}
        change = {"queuedTurnId": submission.turn_id, "change": "removed", **changed_by(by)}
        await self._add(scope, steer, change, fields)
        self._queue.mark_started(submission.turn_id)
        self._queued[submission.turn_id] = submission, by

    async def _add(
        self,
        scope: FactScope,
        steer: DeliveredSteer,
        change: dict[str, Any],
        fields: dict[str, Any],
    ) -> None:
        if len(self.list_pending(scope.turn_id or "")) >= PENDING_STEERS:
            raise QueueFull(f"{PENDING_STEERS} steers wait for turn {scope.turn_id} already")
        fact = self._fact(scope, steer, "pending", change, **fields)
        size = json_characters(fact.payload)
        if size > STEER_CHARACTERS:
            raise SteerTooLong(size)
        self._inputs[steer.steer_id] = steer
        await self._log.write(fact)
        self._came.set()

    async def take(self, scope: FactScope) -> tuple[DeliveredSteer, ...]:
        """Hand out what waits for a turn, written down as delivered before; a queued turn whose
        text it was is over with that.
        """
        pending = self.list_pending(scope.turn_id or "")
        self._taken |= {steer.steer_id or "" for steer in pending}
        self._came.clear()
        taken = tuple(map(self._read_whole, pending))
        removals: list[Fact] = []
        for steer, delivered_steer in zip(pending, taken, strict=True):
            queued, into = steer.queued_turn_id, scope.turn_id or ""
            _, by = self._queued.pop(queued or "", (None, None))
            message_id = _message(delivered_steer)
            self._log.put(
                self._fact(
                    scope, delivered_steer, "delivered", changed_by(by), message_id=message_id
                )
            )
            if queued is not None:
                removals.append(self._queue.build_steered(queued, into, by))
        for removal in removals:
            self._log.put(removal)
        if taken:
            await self._log.flush()
        for delivered_steer in taken:
            self._inputs.pop(delivered_steer.steer_id, None)
        return taken

    async def wait(self, turn_id: str) -> None:
        """Wait until something waits for a turn."""
        while not self.list_pending(turn_id):
            self._came.clear()
            await self._came.wait()

    def build_leftover_turns(self, submission: Submission, *, held: bool) -> list[Fact]:
        """Facts by which what a turn never took becomes the next turns, in the same order; they are
        held if a person stopped the turn.
        """
        facts: list[Fact] = []
        # The last one goes first, because each goes before all others.
        for steer in reversed(self.list_pending(submission.turn_id)):
            steer_input = self._read_whole(steer)
            queued, _ = self._queued.pop(steer_input.steer_id, (None, None))
            next_submission = queued or _to_submission(submission, steer_input)
            row = {
                "steerId": steer_input.steer_id,
                "text": steer_input.text,
                "reason": "steer_not_taken",
            }
            if held:
                row["status"] = HELD
            facts.append(
                self._queue.build_first(
                    next_submission, control="steer", turn_id=submission.turn_id, **row
                )
            )
            self._inputs.pop(steer_input.steer_id, None)
        return facts

    def _read_whole(self, steer: Steer) -> DeliveredSteer:
        known = self._inputs.get(steer.steer_id or "")
        return known or DeliveredSteer(
            steer_id=steer.steer_id or steer.event_id,
            text=steer.text or "",
            input=read_input(steer.input or []),
            by=steer.by,
        )

    def _fact(
        self,
        scope: FactScope,
        steer: DeliveredSteer,
        status: str,
        change: dict[str, Any],
        **fields: Any,
    ) -> Fact:
        payload: dict[str, Any] = {"steerId": steer.steer_id, "text": steer.text, "status": status}
        if steer.input:
            payload["input"] = write_input(steer.input)
        if steer.by is not None:
            payload["by"] = msgspec.to_builtins(steer.by)
        return self._mint.fact(
            scope, "queue.changed", {**payload, **change}, control="steer", **fields
        )


def _message(steer: DeliveredSteer) -> str:
    return f"{steer.steer_id}:user"


def _to_submission(submission: Submission, steer: DeliveredSteer) -> Submission:
    """The turn that a steer becomes: of the same agent, in the same place."""
    return msgspec.structs.replace(
        submission,
        turn_id=steer.steer_id,
        prompt=steer.text,
        input=steer.input,
        retry_of=None,
        attempt=1,
        not_before=None,
        created_at=None,
        by=steer.by,
    )
