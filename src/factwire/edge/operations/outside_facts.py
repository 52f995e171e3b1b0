"""Facts of outside runtimes: read, verified, redacted, and written as one batch or not at all.

A repeat changes nothing, by the ids of the facts; a fact without one is a repeat only in a retry of
its request. A thread that this Edge writes itself takes none
from outside: its sequence has one owner. What was hidden or moved is noted beside the thread, so
that the sender's own sequence stays as it was sent.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from factwire.edge.edge_context import EdgeContext
from factwire.edge.limits import FACTS_IN_A_BATCH, INTAKE_TURN_BYTES
from factwire.edge.operations.outside_intakes import REQUESTS, LoopShare, ThreadIntake, ThreadTrial
from factwire.edge.records.thread_records import bare_id, row_of, thread_of
from factwire.facts import (
    EDGE_CLASSES,
    REDACTED,
    Blob,
    Fact,
    Intake,
    IntakeResult,
    InvalidFacts,
    Person,
    Shape,
    UnreadableInput,
    Violation,
    id_of,
    redact_fact,
)
from factwire.facts.classes.class_tables import TEXT_ENDS, TEXT_PIECES
from factwire.facts.delta_fast_path import INCREMENT, pieces_of
from factwire.facts.fact_rules import NameCheck
from factwire.facts.intake import encode_or_spill
from factwire.facts.outcomes import answer_of, build_answer
from factwire.facts.resources import Accepted, Approval, ApprovalStatus, DecisionCard
from factwire.facts.shapes import is_derived_id
from factwire.journal import (
    AppendRefused,
    AppendResult,
    Cursor,
    CursorError,
    SequenceConflict,
    UnknownFact,
)
from factwire.journal.filter import BESIDE_THREAD
from factwire.runtime import FactScope
from factwire.runtime.action_cards import ShownRequest, build_card, find_request_hash, read_shown
from factwire.serving.asgi import Problem

_ISSUES: Final = 100
_READ_AHEAD: Final = 1_000
"""Facts that are read behind a repeat: what comes twice mostly comes twice as a whole."""


class SentFacts(msgspec.Struct, frozen=True):
    """The JSON of each fact of a request, how to name the place of one in it, and the id of the
    request, which a retry of it has again.
    """

    items: Sequence[bytes]
    place: Callable[[int], str]
    request_id: str

    @classmethod
    def of_lines(cls, body: bytes, request_id: str) -> "SentFacts":
        """The facts of NDJSON; empty lines count for the number of a line only."""
        lines = [(number, line) for number, line in enumerate(body.splitlines(), 1) if line.strip()]
        items = [line for _, line in lines]
        return cls(items, lambda index: f"line {lines[index][0]}: $", request_id)


async def take_facts(edge: EdgeContext, sent: SentFacts) -> Accepted:
    """Write a batch; raises `Problem`, having written nothing."""
    count = len(sent.items)
    if not 1 <= count <= FACTS_IN_A_BATCH:
        raise Problem(
            413 if count else 400,
            "batch_size",
            f"a batch must have 1 to {FACTS_IN_A_BATCH} facts, got {count}",
        )
    batch = OutsideBatch(edge, sent)
    await batch.read()
    # Whoever hangs up leaves a batch that is written or not, never one that nobody keeps track of.
    return await asyncio.shield(asyncio.ensure_future(batch.write()))


class StaleJudgement(Exception):
    """A batch was judged on facts that were not written after all."""


class OutsideBatch:
    """One request on its way into the journal; `own` are the places of the sender's facts among
    `facts`.
    """

    def __init__(self, edge: EdgeContext, sent: SentFacts) -> None:
        self._edge = edge
        self._sent = sent
        self._share = LoopShare()
        self._read: list[tuple[Fact, Shape, str]] = []
        self._begin()

    def _begin(self) -> None:
        self._issues: list[dict[str, str]] = []
        self._facts: list[Fact] = []
        self._own: list[int] = []
        self._notes: list[Fact] = []
        self._blobs: list[Blob] = []
        self._stored: dict[str, Fact] = {}

    async def read(self) -> None:
        """Read every fact; raises `Problem`."""
        reader, names = Intake("off"), NameCheck()
        for index, item in enumerate(self._sent.items):
            if self._share.use_up(len(item)):
                await asyncio.sleep(0)
            try:
                if len(item) > INTAKE_TURN_BYTES:
                    fact, shape = await asyncio.to_thread(reader.read, item)
                else:
                    fact, shape = reader.read(item)
            except (InvalidFacts, UnreadableInput) as error:
                self._refuse(index, error)
                continue
            for issue in names.find_issues(fact, shape):
                self._report(index, issue.code, issue.path, issue.message)
            if is_derived_id(fact.id):
                # What it says is no identity: two requests that say the same are two events.
                fact = msgspec.structs.replace(fact, id=f"{self._sent.request_id}-{index + 1}")
            self._read.append((fact, shape, thread_of(fact) or ""))
        self._ensure_valid()
        for fact, _, _ in self._read:
            _ensure_foreign(self._edge, fact)
        for thread_id in self._list_threads():
            _ensure_foreign_thread(self._edge, thread_id)
            if self._share.use_up():
                await asyncio.sleep(0)

    async def write(self) -> Accepted:
        """Take every fact in and write them; raises `Problem`."""
        names = self._list_threads()
        try:
            appended = await self._write(names)
        except StaleJudgement:
            self._begin()
            appended = await self._write(names, is_alone=True)
        await self._edge.wait_for_records(appended.cursor.seq)
        repeated = sum(appended.repeated[place] for place in self._own)
        seqs = tuple(appended.seqs[place] for place in self._own)
        return Accepted(
            accepted=len(self._own) - repeated,
            repeated=repeated,
            cursor=str(Cursor(appended.epoch, max(seqs))),
            seqs=seqs,
            sequences=tuple(appended.sequences[place] for place in self._own),
        )

    def _list_threads(self) -> list[str]:
        return list(dict.fromkeys(thread_id for _, _, thread_id in self._read))

    async def _write(self, names: Collection[str], *, is_alone: bool = False) -> AppendResult:
        """Judge the batch and write it, other batches of its threads being on their way, or while
        it `is_alone`; raises `StaleJudgement` where it has to be alone.
        """
        intakes = self._edge.intakes
        async with intakes.hold(names, is_alone=is_alone) as threads:
            trials = dict[str, ThreadTrial]()
            for name, thread in threads.items():
                trials[name] = ThreadTrial(thread)
                if self._share.use_up():
                    await asyncio.sleep(0)
            await self._judge(trials)
            has_to_be_saved = any(trial.has_to_be_saved for trial in trials.values())
            if (self._issues or has_to_be_saved) and not await intakes.settle(threads):
                raise StaleJudgement
            self._ensure_valid()
            for blob in self._blobs:
                await self._edge.blobs.put(blob.content, kind=blob.ref.kind)
            saved = await intakes.save(trials, self._edge.feed.cursor.epoch)
            append = intakes.start_append(
                [*self._facts, *self._notes],
                threads,
                None if is_alone else _last_sequences(trials),
                self._list_requests(),
            )
            if saved or is_alone:
                await self._wait_for_append(append, is_alone=is_alone)
            for trial in trials.values():
                trial.join()
                if self._share.use_up():
                    await asyncio.sleep(0)
            await intakes.confirm(trials, saved)
        return await self._wait_for_append(append, is_alone=is_alone)

    def _list_requests(self) -> dict[int, Fact]:
        """What was sent of requests for a decision, by its place among the facts."""
        sent = zip(self._own, self._read, strict=True)
        return {place: fact for place, (fact, _, _) in sent if fact.event_class in REQUESTS}

    async def _wait_for_append(
        self, append: asyncio.Task[AppendResult], *, is_alone: bool
    ) -> AppendResult:
        try:
            return await append
        except SequenceConflict as error:
            if not is_alone:
                raise StaleJudgement from error
            raise Problem(409, error.code, str(error)) from error
        except AppendRefused as error:
            raise Problem(409, error.code, str(error)) from error

    async def _judge(self, trials: dict[str, ThreadTrial]) -> None:
        """Take every fact in as it will be stored."""
        for index, (fact, shape, thread_id) in enumerate(self._read):
            size = len(self._sent.items[index])
            if self._share.use_up(size):
                await asyncio.sleep(0)
            trial = trials[thread_id]
            stored = self._stored.get(fact.id)
            if stored is None and trial.thread.may_have(fact):
                stored = await self._find_stored(fact, trial.thread)
            if stored is not None:
                self._own.append(len(self._facts))
                self._facts.append(_to_repeat(fact, stored))
                continue
            try:
                if size > INTAKE_TURN_BYTES:
                    results = await asyncio.to_thread(trial.take, fact, shape)
                else:
                    results = trial.take(fact, shape)
            except InvalidFacts as error:
                self._refuse(index, error)
                continue
            self._keep(index, fact, results)

    def _keep(self, index: int, fact: Fact, results: Sequence[IntakeResult]) -> None:
        for violation in (*results[-1].violations, *_find_other_decision(self._edge, fact)):
            self._report(index, violation.code, "$", violation.message)
        for result in results:
            self._facts.append(result.fact)
            self._notes += [_detach_note(note) for note in result.notes]
            self._blobs += result.blobs
        self._own.append(len(self._facts) - 1)
        self._stored[fact.id] = self._facts[-1]

    async def _find_stored(self, fact: Fact, thread: ThreadIntake) -> Fact | None:
        """The fact that has this id already in the journal."""
        journal = self._edge.journal
        if not await self._edge.intakes.settle({thread.name: thread}):
            raise StaleJudgement
        try:
            at = await journal.position(fact.id)
        except UnknownFact:
            return None
        after = Cursor(at.epoch, at.seq - 1) if at.seq > 1 else None
        try:
            async for batch in journal.read(after, limit=_READ_AHEAD):
                self._stored |= {known.id: known for _, known in batch.facts()}
        except CursorError:
            # Retention has taken it; what is left of it tells a repeat from another fact.
            return fact
        return self._stored.get(fact.id, fact)

    def _refuse(self, index: int, error: InvalidFacts | UnreadableInput) -> None:
        if isinstance(error, UnreadableInput):
            self._report(index, "schema_mismatch", "$", str(error))
            return
        for issue in error.issues:
            self._report(index, issue.code, issue.path, issue.message)

    def _report(self, index: int, code: str, path: str, message: str) -> None:
        place = self._sent.place(index) + path.removeprefix("$")
        self._issues.append({"code": code, "path": place, "message": message})

    def _ensure_valid(self) -> None:
        if self._issues:
            raise Problem(
                422,
                "invalid_facts",
                f"{len(self._issues)} issues; no fact of the batch was written",
                issues=self._issues[:_ISSUES],
            )


def _last_sequences(trials: Mapping[str, ThreadTrial]) -> dict[str, int | None]:
    """Where each thread stands that a batch adds to."""
    return {
        name: trial.thread.last_sequence for name, trial in trials.items() if name and trial.facts
    }


def _to_repeat(fact: Fact, stored: Fact) -> Fact:
    """A fact that was sent again as it was stored then. Which part of a text a piece was stored
    with depends on the pieces around it, so a piece is known by everything but its text.
    """
    whole = encode_or_spill(redact_fact(fact).fact).fact
    end = TEXT_ENDS.get(fact.event_class or "")
    if pieces_of(fact) is not None:
        return msgspec.structs.replace(whole, payload=stored.payload, ref_ids=stored.ref_ids)
    if end is None:
        return whole
    names = {*TEXT_PIECES[end.pieces].keys, INCREMENT} & stored.payload.keys()
    payload = {**whole.payload, **{name: stored.payload[name] for name in names}}
    return msgspec.structs.replace(whole, payload=payload)


def _find_other_decision(edge: EdgeContext, fact: Fact) -> list[Violation]:
    """A runtime that resolves an approval otherwise than it was decided here."""
    if fact.event_class != "action.resolved":
        return []
    action = id_of(fact, "actionId")
    row = row_of(edge.records.approvals, thread_of(fact), action)
    if row is None or row.status not in ("approved", "denied"):
        return []
    answer = answer_of(fact)
    if answer is None or answer.decision == build_answer("resolved", row.decision).decision:
        return []
    by = f" by {row.decided_by.name}" if row.decided_by else ""
    message = f"action {action} was {row.status}{by}"
    return [Violation("action_already_decided", fact.id, action or "", message)]


class OutsideDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What a person decided here on the request of an outside runtime."""

    decision: Literal["allow", "deny"]
    by: Person
    args_hash: str
    reason: str | None = None
    response: Any = None


async def build_outside_card(edge: EdgeContext, row: Approval) -> DecisionCard:
    """Exactly what an approval of an outside runtime is about: as it was sent, or as it is stored
    if nothing of it was hidden.
    """
    exact = edge.intakes.find_exact(row) or await _read_whole_request(edge, row)
    return build_card(row.approval_id, row.args_hash or "", exact)


async def _read_whole_request(edge: EdgeContext, row: Approval) -> ShownRequest | None:
    after = Cursor(edge.feed.cursor.epoch, row.seq - 1)
    async for batch in edge.journal.read(after, limit=1):
        for _, fact in batch.facts():
            is_whole = REDACTED.encode() not in msgspec.json.encode(fact) and not fact.ref_ids
            if is_whole and row.args_hash and find_request_hash(fact) == row.args_hash:
                return msgspec.structs.replace(read_shown(fact), args_hash=row.args_hash)
            return None
    return None


async def decide_approval(edge: EdgeContext, row: Approval, decided: OutsideDecision) -> Approval:
    """Decide what an outside runtime asked; raises `Problem`. The decision is a fact beside the
    thread, which its readers see, and takes no place in its sequence, which is the runtime's: that
    one closes the request once it has read the decision.
    """
    wanted: ApprovalStatus = "approved" if decided.decision == "allow" else "denied"
    async with edge.intakes.hold([row.thread_id or ""]):
        row = edge.records.approvals.get(row.approval_id) or row
        if decided.args_hash != row.args_hash:
            raise Problem(409, "approval_changed", "the request is not the one that was shown")
        if row.status == wanted:
            return row
        _ensure_open(edge, row)
        card = await build_outside_card(edge, row)
        if decided.decision == "allow" and card.shown is None:
            raise Problem(409, "approval_not_shown", card.reason or "")
        payload = {
            "decision": wanted,
            "decidedBy": msgspec.to_builtins(decided.by),
            "reason": decided.reason,
            "requestedAt": row.created_at,
            "applied": False,
            "response": decided.response,
            BESIDE_THREAD: row.thread_id,
        }
        fact = edge.mint.fact(
            FactScope(
                run_id=row.run_id and bare_id(row, row.run_id),
                project_id=row.project_id,
                subagent_id=row.subagent_id,
            ),
            "action.resolved",
            {name: value for name, value in payload.items() if value is not None},
            title=row.summary or "action.resolved",
            action_id=bare_id(row, row.approval_id),
            tool_call_id=row.tool_call_id,
            edge_id=edge.edge_id,
        )
        records = await edge.append(fact)
    return records.approvals.get(row.approval_id) or row


def _ensure_open(edge: EdgeContext, row: Approval) -> None:
    has_expired = row.expires_at is not None and _has_passed(row.expires_at, edge.mint.clock())
    if row.status == "expired" or (row.status == "pending" and has_expired):
        raise Problem(410, "approval_expired", "the approval has expired")
    if row.status != "pending":
        raise Problem(409, "approval_decided", f"the approval is already {row.status}")


def _has_passed(time: str, now: str) -> bool:
    """Whether a time is over; what is no time never is."""
    try:
        return datetime.fromisoformat(time) <= datetime.fromisoformat(now)
    except (ValueError, TypeError):
        return False


def _ensure_foreign(edge: EdgeContext, fact: Fact) -> None:
    own = edge.mint.runtime_id
    if fact.runtime_id == own:
        raise Problem(
            409,
            "runtime_id_taken",
            f"{own!r} is this Edge's own runtime id; use another one for your runtime",
        )
    if fact.event_class in EDGE_CLASSES:
        raise Problem(
            422,
            "class_reserved",
            f"{fact.event_class!r} is reserved for facts that an Edge records about itself",
        )
    if BESIDE_THREAD in fact.payload:
        raise Problem(
            422,
            "class_reserved",
            f"only an Edge records facts beside a thread; leave out {BESIDE_THREAD!r}",
        )


def _ensure_foreign_thread(edge: EdgeContext, thread_id: str) -> None:
    row = edge.records.threads.get(thread_id)
    if row is not None and row.runtime_id == edge.mint.runtime_id:
        raise Problem(409, "thread_owned_elsewhere", f"thread {thread_id!r} belongs to this Edge")
    if edge.records.is_deleted(thread_id):
        raise Problem(410, "thread_deleted", f"thread {thread_id!r} was deleted")


def _detach_note(note: Fact) -> Fact:
    """A note that takes no place in the sequence of the thread it is about."""
    payload = {name: value for name, value in note.payload.items() if name != "threadId"}
    about = {"aboutThread": note.thread_id} if note.thread_id else {}
    return msgspec.structs.replace(note, thread_id=None, payload={**payload, **about})
