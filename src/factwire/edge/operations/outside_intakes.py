"""What an Edge remembers of the thread of an outside runtime between two requests.

A request is a piece of a stream. Which calls and approvals are open and what has been shown of each
text follows from the thread's own facts; a checkpoint bounds how many of them are read again. What
does not follow from them is the end of a text that may be the beginning of a secret: it is held
back, and it is on disk, readable by this user alone, before the batch that it came in. So no
acknowledged character is lost and no secret is stored in halves, wherever requests and processes
end.

Requests of one thread are judged one after the other, each on what the one before it left, while
the batches before it may still be on their way to the disk. A batch that fails takes with it what
was remembered, and each later batch names the sequence that it builds upon, so that the journal
refuses those that were judged on it; they are judged again.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import apsw
import msgspec

from factwire.edge.limits import (
    EXACT_REQUESTS,
    INTAKE_CHECKPOINT,
    INTAKE_OPEN,
    INTAKE_TURN_BYTES,
    INTAKE_TURN_FACTS,
    INTAKES_IN_MEMORY,
    INTAKES_ON_DISK,
)
from factwire.edge.records.thread_records import bare_id, thread_of
from factwire.facts import (
    Fact,
    Intake,
    IntakeResult,
    LifecycleVerifier,
    Redactor,
    Shape,
    Violation,
    encode_fact,
    id_of,
)
from factwire.facts.classes.class_tables import ACTION_CLOSERS, TEXT_ENDS, TURN_TERMINALS
from factwire.facts.delta_fast_path import (
    KEY_NAME,
    KEY_TURN,
    TextKey,
    ends_text,
    piece_names,
    pieces_of,
    text_key,
)
from factwire.facts.delta_redaction import SavedText
from factwire.facts.fact import PAYLOAD_NAMES
from factwire.facts.intake import encode_or_spill
from factwire.facts.json_values import text_at
from factwire.facts.lifecycle import SavedLifecycle, VerifierMode
from factwire.facts.open_work import RecentIds
from factwire.facts.outcomes import QUESTIONS
from factwire.facts.resources import Approval
from factwire.facts.shapes import decode_plain
from factwire.journal import (
    AppendResult,
    Cursor,
    CursorError,
    FactBatch,
    Filter,
    Journal,
    JournalUnavailable,
    UnknownFact,
)
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.journal.filter import BESIDE_THREAD, find_thread_id
from factwire.journal.sqlite.schema import Database, Value, connect, roll_back
from factwire.runtime.action_cards import ShownRequest, find_request_hash, merge_request, read_shown
from factwire.runtime.gates import OUTPUT_CLASSES

REQUESTS: Final = ("action.required", "action.updated")
"""Facts that say what a person has to decide."""

INTAKE_FILE: Final = "edge-intake.db"


class LoopShare:
    """Counts the work of one request, so that no request keeps the event loop to itself: one that
    has used it up lets others go on.
    """

    def __init__(self) -> None:
        self._facts = 0
        self._bytes = 0

    def use_up(self, size: int = 0) -> bool:
        """Count one more fact or thread; whether there were enough of them."""
        self._facts += 1
        self._bytes += size
        if self._facts < INTAKE_TURN_FACTS and self._bytes < INTAKE_TURN_BYTES:
            return False
        self._facts = self._bytes = 0
        return True


class OutsideVerifier(LifecycleVerifier):
    """The verifier, and that a call gives nothing while somebody is still to allow it."""

    def __init__(self, mode: VerifierMode = "collect") -> None:
        super().__init__(mode, window=INTAKE_OPEN)
        # A repeat is found before it comes here, so that no ids need be remembered and copied.
        self._ids = RecentIds(1)
        self._awaiting: dict[str, str] = {}

    def copy(self) -> Self:
        twin = super().copy()
        vars(twin).update(_awaiting=dict(self._awaiting))
        return twin

    def save_all(self) -> "SavedVerifier":
        return SavedVerifier(self.save(), {**self._awaiting})

    def restore_all(self, saved: "SavedVerifier") -> None:
        self.restore(saved.lifecycle)
        self._awaiting.update(saved.awaiting)

    def expects(self, fact: Fact) -> bool:
        return not self._awaiting and super().expects(fact)

    def feed(self, fact: Fact) -> list[Violation]:
        found = super().feed(fact)
        if found or not self._awaiting or fact.event_class not in OUTPUT_CLASSES:
            return found
        call = id_of(fact, "toolCallId")
        if call not in self._awaiting.values():
            return found
        message = f"tool {call} has output or a result while its approval is open"
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


class SavedVerifier(msgspec.Struct, frozen=True, array_like=True):
    """An `OutsideVerifier` as data."""

    lifecycle: SavedLifecycle
    awaiting: dict[str, str]


class OpenText(msgspec.Struct, frozen=True, array_like=True):
    """A text under way. `carrier` is a piece of it without its text, while something of the text is
    held back.
    """

    key: TextKey
    text: SavedText
    carrier: bytes = b""


OpenTexts = dict[str, list[OpenText]]
"""Producer → its texts that are under way."""


class SavedTexts(msgspec.Struct, frozen=True, kw_only=True):
    """A thread's texts as of the batch with this fact if that was written, and as of `seq` if it
    was not.
    """

    epoch: str
    seq: int
    fact_id: str
    before: OpenTexts
    after: OpenTexts


class IntakeCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What is open in a thread after its facts up to `seq`."""

    epoch: str
    seq: int
    verifier: SavedVerifier


class IntakeStore:
    """Texts under way and checkpoints on disk, by thread; the ones that were used last are kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database: Database | None = None
        self._lock = asyncio.Lock()
        self._written = 0
        self._threads: set[str] = set()
        """Every thread of which something may be on disk, once the database is open; not many more
        than are kept there.
        """

    async def read(self, thread_id: str) -> tuple[SavedTexts | None, IntakeCheckpoint | None]:
        if self._database is not None and thread_id not in self._threads:
            return None, None
        texts, checkpoints = await self._run(
            ("SELECT data FROM texts WHERE thread = ?", [(thread_id,)]),
            ("SELECT data FROM checkpoints WHERE thread = ?", [(thread_id,)]),
        )
        decode = msgspec.msgpack.decode
        return (
            decode(texts[0], type=SavedTexts) if texts else None,
            decode(checkpoints[0], type=IntakeCheckpoint) if checkpoints else None,
        )

    async def write(
        self,
        texts: Mapping[str, SavedTexts],
        checkpoints: Mapping[str, IntakeCheckpoint] | None = None,
    ) -> None:
        """Write what is kept of these threads at once."""
        if not texts and not checkpoints:
            return
        encode = msgspec.msgpack.encode
        try:
            await self._run(
                (_REPLACE.format("texts"), [(name, encode(each)) for name, each in texts.items()]),
                (
                    _REPLACE.format("checkpoints"),
                    [(name, encode(each)) for name, each in (checkpoints or {}).items()],
                ),
            )
        finally:
            self._threads.update(texts, checkpoints or ())
        self._written += 1
        if self._written % _TRIM_WRITES == 0:
            trims = [(trim, [(INTAKES_ON_DISK,)]) for trim in _TRIMS]
            # Whoever writes meanwhile adds its threads when it has written.
            *_, self._threads = map(set, await self._run(*trims, (_NAMES, [()])))

    async def remove(self, thread_id: str) -> None:
        """Keep nothing of a thread."""
        await self._run(
            ("DELETE FROM texts WHERE thread = ?", [(thread_id,)]),
            ("DELETE FROM checkpoints WHERE thread = ?", [(thread_id,)]),
        )
        self._threads.discard(thread_id)

    async def close(self) -> None:
        async with self._lock:
            if self._database is not None:
                await run_disk_work(self._database.close)
                self._database = None

    async def _run(self, *steps: tuple[str, Sequence[Sequence[Value]]]) -> list[list[Any]]:
        """The rows that each statement finds, all of them in one transaction."""
        async with self._lock:
            try:
                return await run_disk_work(self._execute, steps)
            except apsw.Error as error:
                raise JournalUnavailable(f"{self._path}: {error}") from error

    def _execute(self, steps: Sequence[tuple[str, Sequence[Sequence[Value]]]]) -> list[list[Any]]:
        database = self._database or self._open()
        database.execute("BEGIN IMMEDIATE")
        try:
            rows = [
                [row[0] for row in database.executemany(statement, values)] if values else []
                for statement, values in steps
            ]
            database.execute("COMMIT")
        except BaseException:
            roll_back(database)
            raise
        return rows

    def _open(self) -> Database:
        database = connect(str(self._path), vfs=None)
        database.pragma("secure_delete", 1)
        database.wal_autocheckpoint(_CHECKPOINT_PAGES)
        for table in _TABLES:
            database.execute(table)
        for trim in _TRIMS:
            database.execute(trim, (INTAKES_ON_DISK,))
        self._threads.update(row[0] for row in database.execute(_NAMES))
        self._database = database
        return database


_CHECKPOINT_PAGES: Final = 256
_TRIM_WRITES: Final = 1_000
_NAMES: Final = "SELECT thread FROM texts UNION SELECT thread FROM checkpoints"
_REPLACE: Final = "REPLACE INTO {}(thread, data) VALUES(?, ?)"
_TABLES: Final = tuple(
    f"CREATE TABLE IF NOT EXISTS {name}("
    "number INTEGER PRIMARY KEY AUTOINCREMENT, thread TEXT NOT NULL UNIQUE, data BLOB NOT NULL)"
    for name in ("texts", "checkpoints")
)
_TRIMS: Final = tuple(
    f"DELETE FROM {name} WHERE number <= "  # noqa: S608 - our own names
    f"(SELECT number FROM {name} ORDER BY number DESC LIMIT 1 OFFSET ?)"
    for name in ("texts", "checkpoints")
)


class ThreadIntake:
    """What is remembered of one thread between requests. `ids` has every fact of the thread if it
    `has_every_id`; otherwise only some of the last ones. `is_saved` tells that what is on disk
    holds for these texts with the facts after it. `seq` is that of the last fact known to be
    written.
    """

    def __init__(self, name: str, last_sequence: int | None) -> None:
        self.name = name
        self._verifier: OutsideVerifier | None = None
        self.redactors: dict[str, Redactor] = {}
        self.carriers: dict[tuple[str, TextKey], bytes] = {}
        self.last_sequence = last_sequence
        self.ids = RecentIds(INTAKE_OPEN)
        self.has_every_id = last_sequence is None
        self.is_saved = True
        self.seq = 0
        self.facts_since_checkpoint = 0

    @property
    def verifier(self) -> OutsideVerifier:
        if self._verifier is None:
            self._verifier = self._new_verifier()
        return self._verifier

    @verifier.setter
    def verifier(self, verifier: OutsideVerifier) -> None:
        self._verifier = verifier

    def copy_verifier(self) -> OutsideVerifier:
        """A verifier that goes on from here; a new thread has none that could be copied."""
        return self._new_verifier() if self._verifier is None else self._verifier.copy()

    def _new_verifier(self) -> OutsideVerifier:
        # Facts of no thread have nothing in common that could be open.
        return OutsideVerifier("collect" if self.name else "off")

    def may_have(self, fact: Fact) -> bool:
        """Whether the thread may have this fact already; if not, no journal need be asked."""
        if fact.id in self.ids:
            return True
        if self.last_sequence is not None and fact.sequence is not None:
            return fact.sequence <= self.last_sequence
        return not self.has_every_id

    def redactor_of(self, producer: str) -> Redactor:
        if producer not in self.redactors:
            self.redactors[producer] = Redactor()
        return self.redactors[producer]

    def restore_texts(self, texts: OpenTexts) -> None:
        for producer, rows in texts.items():
            self.redactor_of(producer).restore_texts({row.key: row.text for row in rows})
            self.carriers |= {(producer, row.key): row.carrier for row in rows if row.carrier}

    def follow(self, batch: FactBatch, text_seq: int) -> None:
        """Take facts that the journal has; those up to `text_seq` are in the texts already."""
        for seq, fact in batch.facts():
            if find_thread_id(fact) != self.name:
                continue
            self.verifier.feed(fact)
            if seq > text_seq:
                self.redactor_of(fact.runtime_id).follow(fact)
            if fact.event_class in TURN_TERMINALS:
                self.drop_texts()
            self.facts_since_checkpoint += 1
            self.seq = seq

    def drop_texts(self) -> None:
        """Forget the texts of turns that have ended."""
        for redactor in self.redactors.values():
            redactor.drop_texts(self.verifier.has_ended)


class ThreadTrial:
    """The facts of one request for one thread; nothing of the thread changes before `join`."""

    def __init__(self, thread: ThreadIntake) -> None:
        self.thread = thread
        self.verifier = thread.copy_verifier()
        self.facts: list[Fact] = []
        self._producers: dict[str, tuple[Intake, Redactor]] = {}
        self._carriers = thread.carriers.copy()
        self._is_changed = False

    @property
    def has_to_be_saved(self) -> bool:
        """Whether the texts after this request do not follow from what is stored of it: something
        was held back, hidden or moved; or the disk has texts of a batch that was not written.
        """
        if not self.facts:
            return False
        if self._is_changed or not self.thread.is_saved:
            return True
        # The facts of no thread cannot be read again by themselves.
        is_lasting = bool(self.thread.name)
        redactors = [redactor for _, redactor in self._producers.values()]
        return any(each.has_waited or (each.has_changed and not is_lasting) for each in redactors)

    def take(self, fact: Fact, shape: Shape) -> list[IntakeResult]:
        """The fact as it is stored, behind the rest of texts that it ends; raises
        `InvalidFacts`.
        """
        intake, redactor = self._open_producer(fact.runtime_id)
        rests = self._release_texts(fact, redactor) if redactor.held_texts else []
        taken = intake.take(fact, shape)
        if redactor.held_texts:
            self._keep_carriers(fact)
        self._is_changed = self._is_changed or bool(rests or taken.notes or taken.blobs)
        self.facts += [rest.fact for rest in rests]
        self.facts.append(taken.fact)
        return [*rests, taken]

    def save(self, epoch: str) -> SavedTexts:
        """The texts without and with this request."""
        thread = self.thread
        own = {producer: redactor for producer, (_, redactor) in self._producers.items()}
        return SavedTexts(
            epoch=epoch,
            seq=thread.seq,
            fact_id=self.facts[-1].id,
            before=_save_texts(thread.redactors, thread.carriers),
            after=_save_texts(thread.redactors | own, self._carriers),
        )

    def join(self) -> None:
        """The thread is what it is with this request."""
        thread = self.thread
        if not self.facts:
            return
        thread.verifier = self.verifier
        for producer, (_, redactor) in self._producers.items():
            if producer in thread.redactors:
                thread.redactors[producer].join(redactor)
            else:
                thread.redactors[producer] = redactor
        thread.carriers = {
            (producer, key): carrier
            for (producer, key), carrier in self._carriers.items()
            if key in thread.redactor_of(producer).held_texts
        }
        for fact in self.facts:
            thread.ids.add(fact.id)
            if find_thread_id(fact) is None:
                continue
            after = 1 if thread.last_sequence is None else thread.last_sequence + 1
            thread.last_sequence = after if fact.sequence is None else fact.sequence
        thread.has_every_id = thread.has_every_id and len(thread.ids) < INTAKE_OPEN
        thread.facts_since_checkpoint += len(self.facts)
        if any(fact.event_class in TURN_TERMINALS for fact in self.facts):
            thread.drop_texts()

    def _open_producer(self, producer: str) -> tuple[Intake, Redactor]:
        if producer not in self._producers:
            existing = self.thread.redactors.get(producer)
            redactor = Redactor() if existing is None else existing.fork()
            self._producers[producer] = Intake(verifier=self.verifier, redactor=redactor), redactor
        return self._producers[producer]

    def _keep_carriers(self, fact: Fact) -> None:
        pieces = pieces_of(fact)
        if pieces is None:
            return
        names = piece_names(fact, pieces)
        payload = {name: value for name, value in fact.payload.items() if name not in names}
        carrier = encode_fact(msgspec.structs.replace(fact, sequence=0, payload=payload))
        for name in names:
            self._carriers[fact.runtime_id, text_key(fact, pieces, name)] = carrier

    def _release_texts(self, end: Fact, redactor: Redactor) -> list[IntakeResult]:
        """What was held back of the texts that a fact ends, each as one more piece. A sender that
        numbers its facts leaves no place for one: the fact that ends a text carries its rest, and
        what the end of a turn cuts off goes beside the thread.
        """
        is_numbered = end.sequence is not None
        if is_numbered and end.event_class not in TURN_TERMINALS:
            return []
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
                piece = _place_beside(piece, self.thread.name) if is_numbered else piece
                released.append(encode_or_spill(piece))
        return released


def _place_beside(piece: Fact, thread_id: str) -> Fact:
    """A fact that is read with a thread and takes no place in its sequence."""
    names = PAYLOAD_NAMES["threadId"]
    payload = {name: value for name, value in piece.payload.items() if name not in names}
    return msgspec.structs.replace(
        piece,
        thread_id=None,
        payload={**payload, BESIDE_THREAD: thread_id} if thread_id else payload,
    )


def _save_texts(
    redactors: Mapping[str, Redactor], carriers: Mapping[tuple[str, TextKey], bytes]
) -> OpenTexts:
    saved = {
        producer: [
            OpenText(key, text, carriers.get((producer, key), b"") if text.held else b"")
            for key, text in redactor.save_texts().items()
        ]
        for producer, redactor in redactors.items()
    }
    return {producer: rows for producer, rows in saved.items() if rows}


def _has_waiting(texts: OpenTexts) -> bool:
    return any(not row.text.calm for rows in texts.values() for row in rows)


def _ends_text(fact: Fact, key: TextKey) -> bool:
    """Whether a fact ends a text without stating the whole of it."""
    if fact.event_class in TURN_TERMINALS:
        return key[KEY_TURN] == id_of(fact, "turnId")
    end = TEXT_ENDS.get(fact.event_class or "")
    if end is None or (end.replaces_pieces and fact.payload.get(end.key) is not None):
        return False
    # A fact with a last piece of the text goes through the redactor with it.
    return not isinstance(fact.payload.get(key[KEY_NAME]), str) and ends_text(fact, end, key)


class ExactRequest(msgspec.Struct, frozen=True):
    """A request with all its updates as they were sent, the hash of the facts that were stored of
    them, and the ids of these facts.
    """

    request: Fact
    args_hash: str | None
    fact_ids: frozenset[str]


class OutsideIntakes:
    """The threads of outside runtimes: in memory those used last, on disk what cannot be read from
    the journal again.
    """

    def __init__(self, journal: Journal, folder: Path) -> None:
        self.journal = journal
        self._store = IntakeStore(folder / INTAKE_FILE)
        self._threads: OrderedDict[str, ThreadIntake] = OrderedDict()
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}
        self._appends: dict[str, set[asyncio.Task[AppendResult]]] = {}
        self._exact: OrderedDict[tuple[str, str], ExactRequest] = OrderedDict()

    @asynccontextmanager
    async def hold(
        self, thread_ids: Iterable[str], *, is_alone: bool = False
    ) -> AsyncGenerator[dict[str, ThreadIntake]]:
        """Be the only one that judges facts of these threads; while it `is_alone`, nothing of them
        is on its way to the journal.
        """
        share, held, threads = LoopShare(), list[str](), dict[str, ThreadIntake]()
        try:
            for name in sorted(set(thread_ids)):
                await self._lock(name)
                held.append(name)
                if is_alone:
                    await self._wait_for_appends(name)
                threads[name] = await self._load(name)
                if share.use_up():
                    await asyncio.sleep(0)
            self._drop_idle()
            yield threads
        finally:
            for name in held:
                self._unlock(name)

    def start_append(
        self,
        batch: Sequence[Fact],
        threads: Mapping[str, ThreadIntake],
        expected: Mapping[str, int | None] | None,
        requests: Mapping[int, Fact],
    ) -> asyncio.Task[AppendResult]:
        """Begin to write a batch; those that are begun later are written later. Where it fails, the
        threads are forgotten. `requests` are facts as they were sent, by their place in the batch:
        once they are written, what they ask is kept, which the journal holds redacted.
        """
        append = asyncio.ensure_future(self.journal.append(batch, expected=expected))
        for name in threads:
            self._appends.setdefault(name, set()).add(append)
        append.add_done_callback(partial(self._end_append, threads))
        append.add_done_callback(partial(self._keep_exact, batch, requests))
        return append

    async def settle(self, threads: Mapping[str, ThreadIntake]) -> bool:
        """Wait for all that is being written of these threads; whether they still hold."""
        for name in threads:
            await self._wait_for_appends(name)
        return all(self._threads.get(name) is thread for name, thread in threads.items())

    async def save(self, trials: Mapping[str, ThreadTrial], epoch: str) -> dict[str, SavedTexts]:
        """Have on disk what the threads will hold back once the batch is written; nothing else of
        them may be on its way.
        """
        saved, share = dict[str, SavedTexts](), LoopShare()
        for name, trial in trials.items():
            if trial.has_to_be_saved:
                saved[name] = trial.save(epoch)
                trial.thread.is_saved = False
            if share.use_up():
                await asyncio.sleep(0)
        await self._store.write(saved)
        return saved

    async def confirm(
        self, trials: Mapping[str, ThreadTrial], saved: Mapping[str, SavedTexts]
    ) -> None:
        """The batch was written; what it let go is not kept on disk."""
        for name in saved:
            trials[name].thread.is_saved = True
        over = {
            name: msgspec.structs.replace(
                each, seq=trials[name].thread.seq, fact_id="", before=each.after
            )
            for name, each in saved.items()
            if _has_waiting(each.before) and not _has_waiting(each.after)
        }
        await self._store.write(over)

    def forget(self, names: Iterable[str]) -> None:
        """Ask the journal the next time."""
        for name in names:
            self._threads.pop(name, None)

    def find_exact(self, row: Approval) -> ShownRequest | None:
        """What an approval shows, if that is still in memory."""
        known = self._exact.get((row.thread_id or "", bare_id(row, row.approval_id)))
        if known is None or known.args_hash != row.args_hash:
            return None
        # The hash is the sender's, who runs it.
        return msgspec.structs.replace(read_shown(known.request), args_hash=known.args_hash)

    def _keep_exact(
        self,
        batch: Sequence[Fact],
        requests: Mapping[int, Fact],
        append: asyncio.Task[AppendResult],
    ) -> None:
        if append.cancelled() or append.exception() is not None:
            return
        for place, request in requests.items():
            self._keep_request(request, batch[place])
        while len(self._exact) > EXACT_REQUESTS:
            self._exact.popitem(last=False)

    def _keep_request(self, request: Fact, stored: Fact) -> None:
        key = thread_of(request) or "", id_of(request, "actionId") or ""
        known = self._exact.get(key)
        if known is not None and request.id in known.fact_ids:
            # A repeat: what is under its masks may not be what it was.
            return
        if request.event_class == "action.required":
            args_hash = find_request_hash(stored)
            self._exact[key] = ExactRequest(request, args_hash, frozenset({request.id}))
        elif known is not None:
            self._exact[key] = ExactRequest(
                merge_request(known.request.payload, request),
                find_request_hash(stored, known.args_hash),
                known.fact_ids | {request.id},
            )

    async def remove(self, name: str) -> None:
        """Keep nothing of a thread whose facts were removed, unless a turn goes on in it."""
        await self._lock(name)
        try:
            await self._wait_for_appends(name)
            row = await self.journal.thread(name)
            if row is None or row.status not in ("running", "waiting"):
                self._threads.pop(name, None)
                await self._store.remove(name)
        finally:
            self._unlock(name)

    async def close(self) -> None:
        await self._store.close()

    def _end_append(
        self, threads: Mapping[str, ThreadIntake], append: asyncio.Task[AppendResult]
    ) -> None:
        has_failed = append.cancelled() or append.exception() is not None
        reached = 0 if has_failed else append.result().cursor.seq
        for name, thread in threads.items():
            self._appends[name].discard(append)
            if not self._appends[name]:
                del self._appends[name]
            if not has_failed:
                thread.seq = max(thread.seq, reached)
            elif self._threads.get(name) is thread:
                del self._threads[name]

    async def _wait_for_appends(self, name: str) -> None:
        while appends := self._appends.get(name):
            await asyncio.wait(appends)

    async def _lock(self, name: str) -> None:
        # No context manager: a request may have thousands of threads, and each would add six
        # objects that the garbage collector goes through.
        lock, users = self._locks.get(name) or (asyncio.Lock(), 0)
        self._locks[name] = lock, users + 1
        try:
            await lock.acquire()
        except BaseException:
            self._leave(name)
            raise

    def _unlock(self, name: str) -> None:
        self._locks[name][0].release()
        self._leave(name)

    def _leave(self, name: str) -> None:
        lock, users = self._locks.pop(name)
        if users > 1:
            self._locks[name] = lock, users - 1

    async def _load(self, name: str) -> ThreadIntake:
        thread = self._threads.get(name)
        if thread is not None and thread.facts_since_checkpoint >= INTAKE_CHECKPOINT:
            thread = thread if await self.settle({name: thread}) else None
        if thread is None:
            await self._wait_for_appends(name)
            thread = self._threads[name] = await self._restore(name)
        if name and thread.facts_since_checkpoint >= INTAKE_CHECKPOINT:
            await self._save_checkpoint(name, thread)
        self._threads.move_to_end(name)
        return thread

    def _drop_idle(self) -> None:
        over = len(self._threads) - INTAKES_IN_MEMORY
        if over > 0:
            busy = self._locks.keys() | self._appends.keys()
            for each in [each for each in self._threads if each not in busy][:over]:
                del self._threads[each]

    async def _save_checkpoint(self, name: str, thread: ThreadIntake) -> None:
        """Bound what is read to know this thread again; nothing of it is on its way."""
        epoch = (await self.journal.head()).epoch
        texts = _save_texts(thread.redactors, thread.carriers)
        await self._store.write(
            {name: SavedTexts(epoch=epoch, seq=thread.seq, fact_id="", before=texts, after=texts)},
            {
                name: IntakeCheckpoint(
                    epoch=epoch, seq=thread.seq, verifier=thread.verifier.save_all()
                )
            },
        )
        thread.is_saved = True
        thread.facts_since_checkpoint = 0

    async def _restore(self, name: str) -> ThreadIntake:
        row = await self.journal.thread(name) if name else None
        thread = ThreadIntake(name, row and row.last_sequence)
        thread.has_every_id = row is None and bool(name)
        saved, checkpoint = await self._store.read(name)
        epoch = (await self.journal.head()).epoch if saved or checkpoint or row else ""
        text_seq = 0
        if saved is not None and saved.epoch == epoch:
            at = await self._find_seq(saved.fact_id)
            thread.is_saved = at is not None or not saved.fact_id
            thread.restore_texts(saved.before if at is None else saved.after)
            text_seq = at or saved.seq
        if row is not None:
            if checkpoint is not None and checkpoint.epoch == epoch:
                thread.verifier.restore_all(checkpoint.verifier)
                thread.seq = checkpoint.seq
            await self._follow(name, thread, epoch, text_seq)
        return thread

    async def _follow(self, name: str, thread: ThreadIntake, epoch: str, text_seq: int) -> None:
        """Take the facts of a thread after its checkpoint."""
        after = Cursor(epoch, thread.seq) if thread.seq else None
        wanted = Filter(thread=name)
        try:
            async for batch in self.journal.read(after, filter=wanted):
                thread.follow(batch, text_seq)
        except CursorError:
            # Retention has taken what came next; what was open before it is remembered.
            async for batch in self.journal.read(filter=wanted):
                thread.follow(batch, text_seq)

    async def _find_seq(self, fact_id: str) -> int | None:
        try:
            return (await self.journal.position(fact_id)).seq if fact_id else None
        except UnknownFact:
            return None
