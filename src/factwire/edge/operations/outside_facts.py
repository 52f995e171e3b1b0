"""Facts of outside runtimes: read, verified, redacted, and written as one batch or not at all.

A request is a piece of a stream. What has to be remembered between two of them is kept for each
thread: which calls and approvals are open, which comes from the thread's own facts, and the texts
that are under way. The end of a text that may be the beginning of a secret is held back, and it is
on disk, readable by this user alone, before the batch that it came in: so no acknowledged character
is lost and no secret is stored in halves, wherever requests and processes end.

A repeat changes nothing, by the ids of the facts. A thread that this Edge writes itself takes none
from outside: its sequence has one owner. What was hidden or moved is noted beside the thread, so
that the sender's own sequence stays as it was sent.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, Self

import apsw
import msgspec

from factwire.edge.edge_context import EdgeContext
from factwire.edge.limits import (
    EXACT_REQUESTS,
    FACTS_IN_A_BATCH,
    INTAKE_OPEN,
    INTAKES_IN_MEMORY,
    INTAKES_ON_DISK,
)
from factwire.edge.records.run_records import DECIDED_THREAD
from factwire.edge.records.thread_records import bare_id, row_of, thread_of
from factwire.facts import (
    EDGE_CLASSES,
    REDACTED,
    Blob,
    Fact,
    Intake,
    IntakeResult,
    InvalidFacts,
    LifecycleVerifier,
    Person,
    Redactor,
    Shape,
    UnreadableInput,
    Violation,
    encode_fact,
    id_of,
    redact_fact,
)
from factwire.facts.classes.class_tables import (
    ACTION_CLOSERS,
    MOVES,
    TEXT_ENDS,
    TEXT_PIECES,
    TURN_TERMINALS,
)
from factwire.facts.delta_fast_path import (
    INCREMENT,
    KEY_NAME,
    KEY_TURN,
    TextKey,
    ends_text,
    piece_names,
    pieces_of,
    text_key,
)
from factwire.facts.delta_redaction import SavedText
from factwire.facts.fact_rules import name_issues
from factwire.facts.intake import encode_or_spill
from factwire.facts.json_values import text_at
from factwire.facts.lifecycle import VerifierMode
from factwire.facts.open_work import RecentIds
from factwire.facts.outcomes import QUESTIONS, answer_of, build_answer
from factwire.facts.resources import Accepted, Approval, ApprovalStatus, DecisionCard
from factwire.facts.shapes import decode_plain
from factwire.journal import (
    AppendRefused,
    Cursor,
    CursorError,
    Filter,
    Journal,
    JournalUnavailable,
    UnknownFact,
)
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.journal.sqlite.schema import Database, Value, connect, roll_back
from factwire.runtime import FactScope
from factwire.runtime.action_cards import ShownRequest, build_card, read_shown
from factwire.serving.asgi import Problem

INTAKE_FILE: Final = "edge-intake.db"
_ISSUES: Final = 100
_READ_AHEAD: Final = 1_000
"""Facts that are read behind a repeat: what comes twice mostly comes twice as a whole."""

_LIFECYCLE_CLASSES: Final = tuple(
    sorted({*MOVES, *TURN_TERMINALS, "turn.submitted", "turn.started"})
)


class OutsideVerifier(LifecycleVerifier):
    """The verifier, and that a call has no result while somebody is still to allow it."""

    def __init__(self, mode: VerifierMode = "collect") -> None:
        super().__init__(mode, window=INTAKE_OPEN)
        self._awaiting: dict[str, str] = {}

    def copy(self) -> Self:
        twin = super().copy()
        vars(twin).update(_awaiting=dict(self._awaiting))
        return twin

    def _violations(self, fact: Fact, event_class: str) -> list[Violation]:
        found = super()._violations(fact, event_class)
        call = id_of(fact, "toolCallId")
        if found or event_class != "tool.result" or call not in self._awaiting.values():
            return found
        message = f"tool {call} has a result while its approval is open"
        return [Violation("approval_pending", fact.id, call or "", message)]

    def _take(self, fact: Fact, event_class: str) -> None:
        super()._take(fact, event_class)
        action, call = id_of(fact, "actionId"), id_of(fact, "toolCallId")
        if action is None:
            return
        if event_class in ACTION_CLOSERS:
            self._awaiting.pop(action, None)
        elif event_class == "action.required" and call is not None and not _asks_for_words(fact):
            self._awaiting[action] = call


def _asks_for_words(request: Fact) -> bool:
    return text_at(request.payload, "actionType") in QUESTIONS


class OpenText(msgspec.Struct, frozen=True, array_like=True):
    """A text under way. `carrier` is a piece of it without its text, while something of the text is
    held back.
    """

    key: TextKey
    text: SavedText
    carrier: bytes = b""


OpenTexts = dict[str, list[OpenText]]
"""Producer → its texts that are under way."""


class SavedIntake(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread's texts are if the batch with this fact was written, and if it was not."""

    epoch: str
    fact_id: str
    before: OpenTexts
    after: OpenTexts


class IntakeStore:
    """Texts under way on disk, by thread; the ones that were used last are kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database: Database | None = None
        self._lock = asyncio.Lock()
        self._written = 0

    async def read(self, thread_id: str) -> SavedIntake | None:
        rows = await self._run("SELECT data FROM intakes WHERE thread = ?", [(thread_id,)])
        return msgspec.msgpack.decode(rows[0], type=SavedIntake) if rows else None

    async def write(self, saved: dict[str, SavedIntake]) -> None:
        """Write the texts of these threads at once."""
        rows = [(thread_id, msgspec.msgpack.encode(each)) for thread_id, each in saved.items()]
        await self._run("REPLACE INTO intakes(thread, data) VALUES(?, ?)", rows)
        self._written += 1
        if self._written % _TRIM_WRITES == 0:
            await self._run(_TRIM, [(INTAKES_ON_DISK,)])

    async def remove(self, thread_ids: list[str]) -> None:
        await self._run("DELETE FROM intakes WHERE thread = ?", [(each,) for each in thread_ids])

    async def close(self) -> None:
        async with self._lock:
            if self._database is not None:
                await run_disk_work(self._database.close)
                self._database = None

    async def _run(self, statement: str, values: Sequence[Sequence[Value]]) -> list[bytes]:
        if not values:
            return []
        async with self._lock:
            try:
                return await run_disk_work(self._execute, statement, values)
            except apsw.Error as error:
                raise JournalUnavailable(f"{self._path}: {error}") from error

    def _execute(self, statement: str, values: Sequence[Sequence[Value]]) -> list[bytes]:
        if self._database is None:
            self._database = connect(str(self._path), vfs=None)
            self._database.pragma("secure_delete", 1)
            self._database.wal_autocheckpoint(_CHECKPOINT_PAGES)
            self._database.execute(_TABLE)
            self._database.execute(_TRIM, (INTAKES_ON_DISK,))
        self._database.execute("BEGIN IMMEDIATE")
        try:
            rows: list[bytes] = [row[0] for row in self._database.executemany(statement, values)]
            self._database.execute("COMMIT")
        except BaseException:
            roll_back(self._database)
            raise
        return rows


_CHECKPOINT_PAGES: Final = 256
_TRIM_WRITES: Final = 1_000
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS intakes("
    "number INTEGER PRIMARY KEY AUTOINCREMENT, thread TEXT NOT NULL UNIQUE, data BLOB NOT NULL)"
)
_TRIM: Final = (
    "DELETE FROM intakes WHERE number <= "
    "(SELECT number FROM intakes ORDER BY number DESC LIMIT 1 OFFSET ?)"
)


class ThreadIntake:
    """What is remembered of one thread between requests. `ids` has every fact of the thread if it
    `has_every_id`; otherwise only some of the last ones. `is_saved` says that the disk has these
    texts.
    """

    def __init__(self, verifier: OutsideVerifier, last_sequence: int | None) -> None:
        self.verifier = verifier
        self.texts: OpenTexts = {}
        self.last_sequence = last_sequence
        self.ids = RecentIds(INTAKE_OPEN)
        self.has_every_id = last_sequence is None
        self.is_saved = True

    def may_have(self, fact: Fact) -> bool:
        """Whether the thread may have this fact already; if not, no journal need be asked."""
        if fact.id in self.ids:
            return True
        if self.last_sequence is not None and fact.sequence is not None:
            return fact.sequence <= self.last_sequence
        return not self.has_every_id

    def note_written(self, fact_id: str, sequence: int | None) -> None:
        self.ids.add(fact_id)
        self.has_every_id = self.has_every_id and len(self.ids) < INTAKE_OPEN
        if sequence is not None:
            self.last_sequence = max(sequence, self.last_sequence or sequence)


class ThreadTrial:
    """The facts of one request for one thread; nothing of the thread changes before they are
    written.
    """

    def __init__(self, thread: ThreadIntake) -> None:
        self.thread = thread
        self.verifier = thread.verifier.copy()
        self.first_id: str | None = None
        self._producers: dict[str, tuple[Intake, Redactor]] = {}
        self._carriers = {
            (producer, text.key): text.carrier
            for producer, texts in thread.texts.items()
            for text in texts
        }

    @property
    def is_doubtful(self) -> bool:
        """Whether the disk has texts that hold only once this request is written."""
        return self.first_id is not None and not self.thread.is_saved

    def take(self, fact: Fact, shape: Shape) -> list[IntakeResult]:
        """The fact as it is stored, behind the rest of texts that it ends; raises
        `InvalidFacts`.
        """
        self.first_id = self.first_id or fact.id
        intake, redactor = self._open_producer(fact.runtime_id)
        rests = self._release_texts(fact, redactor) if fact.sequence is None else []
        taken = intake.take(fact, shape)
        pieces = pieces_of(fact)
        if pieces is not None and redactor.held_texts:
            names = piece_names(fact, pieces)
            payload = {name: value for name, value in fact.payload.items() if name not in names}
            carrier = encode_fact(msgspec.structs.replace(fact, sequence=0, payload=payload))
            for name in names:
                self._carriers[fact.runtime_id, text_key(fact, pieces, name)] = carrier
        return [*rests, taken]

    def open_texts(self) -> OpenTexts:
        """The texts that are under way after this request."""
        texts = {
            producer: [
                OpenText(key, text, self._carriers.get((producer, key), b"") if text.held else b"")
                for key, text in redactor.save_texts().items()
                if not (text.calm and self.verifier.has_ended(key[KEY_TURN]))
            ]
            for producer, (_, redactor) in self._producers.items()
        }
        return {producer: rows for producer, rows in (self.thread.texts | texts).items() if rows}

    def _open_producer(self, producer: str) -> tuple[Intake, Redactor]:
        if producer not in self._producers:
            redactor = Redactor()
            texts = self.thread.texts.get(producer, ())
            redactor.restore_texts({text.key: text.text for text in texts})
            self._producers[producer] = Intake(verifier=self.verifier, redactor=redactor), redactor
        return self._producers[producer]

    def _release_texts(self, end: Fact, redactor: Redactor) -> list[IntakeResult]:
        """What was held back of the texts that a fact ends, each as one more piece. A sender that
        numbers its facts leaves no place for one: the fact that ends a text carries its rest, and
        the end of a turn in the middle of a text is noted.
        """
        released: list[IntakeResult] = []
        for key in [key for key in redactor.held_texts if _ends_text(end, key)]:
            carrier = decode_plain(self._carriers.get((end.runtime_id, key), b""))
            rest, _ = redactor.release(key)
            if carrier is not None and rest:
                piece = msgspec.structs.replace(
                    carrier,
                    id=f"{end.id}#rest-{len(released) + 1}",
                    sequence=None,
                    created_at=end.created_at,
                    payload={**carrier.payload, key[KEY_NAME]: rest},
                )
                released.append(encode_or_spill(piece))
        return released


def _ends_text(fact: Fact, key: TextKey) -> bool:
    """Whether a fact ends a text without stating the whole of it."""
    if fact.event_class in TURN_TERMINALS:
        return key[KEY_TURN] == id_of(fact, "turnId")
    end = TEXT_ENDS.get(fact.event_class or "")
    if end is None or (end.replaces_pieces and fact.payload.get(end.key) is not None):
        return False
    # A fact with a last piece of the text goes through the redactor with it.
    return not isinstance(fact.payload.get(key[KEY_NAME]), str) and ends_text(fact, end, key)


_REQUESTS: Final = ("action.required", "action.updated")


class OutsideIntakes:
    """The threads of outside runtimes: in memory those used last, on disk what cannot be read from
    the journal again.
    """

    def __init__(self, journal: Journal, folder: Path) -> None:
        self.journal = journal
        self._store = IntakeStore(folder / INTAKE_FILE)
        self._threads: OrderedDict[str, ThreadIntake] = OrderedDict()
        self._exact: OrderedDict[tuple[str, str], ShownRequest] = OrderedDict()
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    def keep_exact(self, fact: Fact) -> None:
        """Keep what a request shows as it was sent, which the journal holds redacted."""
        if fact.event_class in _REQUESTS:
            self._exact[thread_of(fact) or "", id_of(fact, "actionId") or ""] = read_shown(fact)
            while len(self._exact) > EXACT_REQUESTS:
                self._exact.popitem(last=False)

    def find_exact(self, row: Approval) -> ShownRequest | None:
        """What an approval shows, if that is still in memory."""
        return self._exact.get((row.thread_id or "", bare_id(row, row.approval_id)))

    @asynccontextmanager
    async def hold(self, thread_ids: Iterable[str]) -> AsyncGenerator[dict[str, ThreadIntake]]:
        """Be the only one that adds to these threads."""
        names = sorted(set(thread_ids))
        async with AsyncExitStack() as stack:
            for name in names:
                await stack.enter_async_context(self._hold_one(name))
            yield {name: await self._load(name) for name in names}

    async def save(self, trials: dict[str, ThreadTrial], epoch: str) -> None:
        """Have on disk what the threads will hold back once the batch is written."""
        saved: dict[str, SavedIntake] = {}
        for name, trial in trials.items():
            before, after = trial.thread.texts, trial.open_texts()
            if trial.first_id is not None and not (trial.thread.is_saved and before == after):
                saved[name] = SavedIntake(
                    epoch=epoch, fact_id=trial.first_id, before=before, after=after
                )
                trial.thread.is_saved = False
        await self._store.write(saved)

    async def revert(self, trials: dict[str, ThreadTrial], epoch: str) -> None:
        """The batch was refused: the disk has what was there before."""
        texts = {name: trial.thread.texts for name, trial in trials.items() if trial.is_doubtful}
        await self._store.write(
            {
                name: SavedIntake(epoch=epoch, fact_id="", before=each, after=each)
                for name, each in texts.items()
            }
        )

    async def commit(self, trials: dict[str, ThreadTrial]) -> None:
        """The batch was written."""
        written = {name: trial for name, trial in trials.items() if trial.first_id is not None}
        texts = {name: trial.open_texts() for name, trial in written.items()}
        over = [name for name, trial in written.items() if trial.is_doubtful and not texts[name]]
        for name, trial in written.items():
            thread = trial.thread
            thread.verifier, thread.texts, thread.is_saved = trial.verifier, texts[name], True
        await self._store.remove(over)

    def forget(self, names: Iterable[str]) -> None:
        """Nobody knows whether a batch was written: ask the journal the next time."""
        for name in names:
            self._threads.pop(name, None)

    async def close(self) -> None:
        await self._store.close()

    @asynccontextmanager
    async def _hold_one(self, name: str) -> AsyncGenerator[None]:
        lock, users = self._locks.get(name, (asyncio.Lock(), 0))
        self._locks[name] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(name)
            if users > 1:
                self._locks[name] = lock, users - 1

    async def _load(self, name: str) -> ThreadIntake:
        thread = self._threads.pop(name, None) or await self._restore(name)
        self._threads[name] = thread
        idle = [each for each in self._threads if each not in self._locks]
        for each in idle[: max(0, len(self._threads) - INTAKES_IN_MEMORY)]:
            del self._threads[each]
        return thread

    async def _restore(self, name: str) -> ThreadIntake:
        # Facts of no thread have nothing in common that could be open.
        verifier = OutsideVerifier("collect" if name else "off")
        row = await self.journal.thread(name) if name else None
        if row is not None:
            wanted = Filter(thread=name, classes=_LIFECYCLE_CLASSES)
            async for batch in self.journal.read(filter=wanted):
                for _, fact in batch.facts():
                    verifier.feed(fact)
        thread = ThreadIntake(verifier, row and row.last_sequence)
        thread.has_every_id = row is None and bool(name)
        saved = await self._store.read(name)
        if saved is not None and saved.epoch == (await self.journal.head()).epoch:
            thread.is_saved = await self._has_fact(saved.fact_id)
            thread.texts = saved.after if thread.is_saved else saved.before
        return thread

    async def _has_fact(self, fact_id: str) -> bool:
        try:
            await self.journal.position(fact_id)
        except UnknownFact:
            return False
        return True


class SentFacts(msgspec.Struct, frozen=True):
    """The JSON of each fact of a request, and how to name the place of one in it."""

    items: Sequence[bytes]
    place: Callable[[int], str]

    @classmethod
    def of_lines(cls, body: bytes) -> "SentFacts":
        """The facts of NDJSON; empty lines count for the number of a line only."""
        lines = [(number, line) for number, line in enumerate(body.splitlines(), 1) if line.strip()]
        return cls([line for _, line in lines], lambda index: f"line {lines[index][0]}: $")


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
    batch.read()
    # Whoever hangs up leaves a batch that is written or not, never one that nobody keeps track of.
    return await asyncio.shield(asyncio.ensure_future(batch.write()))


class OutsideBatch:
    """One request on its way into the journal; `own` are the places of the sender's facts among
    `facts`.
    """

    def __init__(self, edge: EdgeContext, sent: SentFacts) -> None:
        self._edge = edge
        self._sent = sent
        self._read: list[tuple[Fact, Shape]] = []
        self._issues: list[dict[str, str]] = []
        self._facts: list[Fact] = []
        self._own: list[int] = []
        self._notes: list[Fact] = []
        self._blobs: list[Blob] = []
        self._stored: dict[str, Fact] = {}

    def read(self) -> None:
        """Read every fact; raises `Problem`."""
        reader = Intake("off")
        for index, item in enumerate(self._sent.items):
            try:
                fact, shape = reader.read(item)
            except (InvalidFacts, UnreadableInput) as error:
                self._refuse(index, error)
                continue
            for issue in name_issues(fact, shape):
                self._report(index, issue.code, issue.path, issue.message)
            self._read.append((fact, shape))
        self._ensure_valid()
        for fact, _ in self._read:
            _ensure_foreign(self._edge, fact)

    async def write(self) -> Accepted:
        """Take every fact in and write them; raises `Problem`."""
        edge, intakes = self._edge, self._edge.intakes
        async with intakes.hold(thread_of(fact) or "" for fact, _ in self._read) as threads:
            trials = {name: ThreadTrial(thread) for name, thread in threads.items()}
            for index, (fact, shape) in enumerate(self._read):
                await self._take(index, fact, shape, trials[thread_of(fact) or ""])
            self._ensure_valid()
            for blob in self._blobs:
                await edge.blobs.put(blob.content, kind=blob.ref.kind)
            await intakes.save(trials, edge.feed.cursor.epoch)
            try:
                appended = await edge.journal.append([*self._facts, *self._notes])
            except AppendRefused as error:
                await intakes.revert(trials, edge.feed.cursor.epoch)
                raise Problem(409, error.code, str(error)) from error
            except BaseException:
                intakes.forget(threads)
                raise
            for fact, sequence in zip(self._facts, appended.sequences, strict=False):
                threads[thread_of(fact) or ""].note_written(fact.id, sequence)
            await intakes.commit(trials)
            for fact, _ in self._read:
                intakes.keep_exact(fact)
        await edge.wait_for_records(appended.cursor.seq)
        repeated = sum(appended.repeated[place] for place in self._own)
        seqs = tuple(appended.seqs[place] for place in self._own)
        return Accepted(
            accepted=len(self._own) - repeated,
            repeated=repeated,
            cursor=str(Cursor(appended.epoch, max(seqs))),
            seqs=seqs,
            sequences=tuple(appended.sequences[place] for place in self._own),
        )

    async def _take(self, index: int, fact: Fact, shape: Shape, trial: ThreadTrial) -> None:
        stored = await self._find_stored(fact, trial.thread)
        if stored is not None:
            self._own.append(len(self._facts))
            self._facts.append(_to_repeat(fact, stored))
            return
        try:
            results = trial.take(fact, shape)
        except InvalidFacts as error:
            self._refuse(index, error)
            return
        violations = [*results[-1].violations, *_find_other_decision(self._edge, fact)]
        for violation in violations:
            self._report(index, violation.code, "$", violation.message)
        for result in results:
            self._facts.append(result.fact)
            self._notes += [_detach_note(note) for note in result.notes]
            self._blobs += result.blobs
        self._own.append(len(self._facts) - 1)
        self._stored[fact.id] = self._facts[-1]

    async def _find_stored(self, fact: Fact, thread: ThreadIntake) -> Fact | None:
        """The fact that has this id already, in this batch or in the journal."""
        if fact.id in self._stored or not thread.may_have(fact):
            return self._stored.get(fact.id)
        try:
            at = await self._edge.journal.position(fact.id)
        except UnknownFact:
            return None
        after = Cursor(at.epoch, at.seq - 1) if at.seq > 1 else None
        try:
            async for batch in self._edge.journal.read(after, limit=_READ_AHEAD):
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
    message = f"action {action} was {row.status} by {row.decided_by}"
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
    if exact is not None and row.args_hash is not None:
        # The hash is the sender's, who runs it.
        exact = msgspec.structs.replace(exact, args_hash=row.args_hash)
    return build_card(row.approval_id, row.args_hash or "", exact)


async def _read_whole_request(edge: EdgeContext, row: Approval) -> ShownRequest | None:
    after = Cursor(edge.feed.cursor.epoch, row.seq - 1)
    async for batch in edge.journal.read(after, limit=1):
        for _, fact in batch.facts():
            is_same = (text_at(fact.payload, "argsHash") or row.args_hash) == row.args_hash
            is_whole = REDACTED.encode() not in msgspec.json.encode(fact) and not fact.ref_ids
            return read_shown(fact) if is_same and is_whole else None
    return None


async def decide_approval(edge: EdgeContext, row: Approval, decided: OutsideDecision) -> Approval:
    """Decide what an outside runtime asked; raises `Problem`. The decision is a fact beside the
    thread, whose sequence is the runtime's: that one closes the request there once it has read it.
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
            "applied": False,
            "response": decided.response,
            DECIDED_THREAD: row.thread_id,
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
        records = await edge.append(redact_fact(fact).fact)
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
    if fact.event_class in ACTION_CLOSERS and DECIDED_THREAD in fact.payload:
        raise Problem(
            422,
            "class_reserved",
            f"only an Edge decides beside a thread; leave out {DECIDED_THREAD!r}",
        )
    thread_id = thread_of(fact)
    if thread_id is None:
        return
    row = edge.records.threads.get(thread_id)
    if row is not None and row.runtime_id == own:
        raise Problem(409, "thread_owned_elsewhere", f"thread {thread_id!r} belongs to this Edge")
    if thread_id in edge.records.deleted:
        raise Problem(410, "thread_deleted", f"thread {thread_id!r} was deleted")


def _detach_note(note: Fact) -> Fact:
    """A note that takes no place in the sequence of the thread it is about."""
    payload = {name: value for name, value in note.payload.items() if name != "threadId"}
    about = {"aboutThread": note.thread_id} if note.thread_id else {}
    return msgspec.structs.replace(note, thread_id=None, payload={**payload, **about})
