"""The digest of a run: everything in a pack that is derived, as a pure function of its facts.

One pass, in constant memory: a projection starts anew between turns once it holds enough and
nothing is open, and what must be known of the whole run lies in a private scratch database without
a name. Because nothing else goes in, anybody who has the facts can derive the rest again and
compare; that is how a false summary over true facts is found.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

import apsw
import msgspec

from factwire.evidence.limits import (
    KNOWN_IDS,
    LISTED,
    LISTED_IDS,
    LIVE_THREADS,
    LONGEST_RUN_FACTS,
    RUN_FACTS,
)
from factwire.evidence.pack_format import (
    ARTIFACTS,
    CONTEXT,
    DECISIONS,
    EVIDENCE,
    GAPS,
    IDS,
    PACK_VERSION,
    REVIEWS,
    SECTIONS,
    TASKS,
    THREADS,
    TIMELINE,
    TOOLS,
    VERIFICATIONS,
    BlobNote,
    ContextNote,
    CorrelationId,
    DecisionNote,
    EvidencePack,
    JournalAnchors,
    KnownGap,
    ReviewRecord,
    RuntimeSummary,
    Verification,
)
from factwire.evidence.pack_rows import GapFinder, build_fact_row, encode_gap, find_blob_gap
from factwire.facts import Fact
from factwire.facts.classes.class_tables import TURN_TERMINALS
from factwire.facts.fact import ATTRIBUTES, PAYLOAD_NAMES
from factwire.journal.filter import find_thread_id
from factwire.journal.sqlite.schema import Database
from factwire.projection import (
    Projection,
    ProjectionState,
    artifact_ref,
    evidence_ref,
    task_snapshot,
)
from factwire.projection.read_models import (
    ArtifactRef,
    EvidenceRef,
    TaskSnapshot,
    ThreadReadModel,
    ToolCallSummary,
    thread_outline,
)
from factwire.projection.timeline import TimelineEntry

_CACHE_KIB: Final = 4_096

Merge = Callable[[bytes, bytes], bytes]
"""The row that is known and the row that comes → the row to keep."""


class ScratchTables:
    """Rows by table, in the order in which each was first put."""

    def __init__(self) -> None:
        self._database = cast("Database", apsw.Connection(""))
        self._database.pragma("journal_mode", "off")
        self._database.pragma("synchronous", "off")
        self._database.pragma("cache_size", -_CACHE_KIB)
        self._database.execute("BEGIN")
        self._tables: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close(True)  # noqa: FBT003

    def append(self, table: str, row: bytes) -> None:
        """Put a row that no other one replaces."""
        self._database.execute(f"INSERT INTO {self._ensure_table(table)}(body) VALUES(?)", (row,))

    def note(self, table: str, key: str, row: bytes) -> None:
        """Put a row unless its key is known."""
        name = self._ensure_table(table)
        self._database.execute(f"INSERT OR IGNORE INTO {name}(key, body) VALUES(?, ?)", (key, row))

    def put(self, table: str, key: str, row: bytes, merge: Merge | None = None) -> None:
        """Put a row under a key; what is known there is merged with it, or gives way."""
        name = self._ensure_table(table)
        existing = self._database.execute(f"SELECT body FROM {name} WHERE key = ?", (key,)).get  # noqa: S608
        if existing is None:
            self._database.execute(f"INSERT INTO {name}(key, body) VALUES(?, ?)", (key, row))
        else:
            row = row if merge is None else merge(existing, row)
            self._database.execute(f"UPDATE {name} SET body = ? WHERE key = ?", (row, key))  # noqa: S608

    def rows(self, table: str, limit: int | None = None) -> Iterator[bytes]:
        sql = f"SELECT body FROM {self._ensure_table(table)} ORDER BY id LIMIT ?"  # noqa: S608
        for (body,) in self._database.execute(sql, (-1 if limit is None else limit,)):
            yield body

    def count(self, table: str) -> int:
        found: int = self._database.execute(f"SELECT count(*) FROM {self._ensure_table(table)}").get  # noqa: S608
        return found

    def _ensure_table(self, table: str) -> str:
        name = self._tables.get(table)
        if name is None:
            name = self._tables[table] = f"t{len(self._tables)}"
            columns = "id INTEGER PRIMARY KEY, key TEXT UNIQUE, body BLOB NOT NULL"
            self._database.execute(f"CREATE TABLE {name}({columns})")
        return name


_BEGINNINGS: Final = frozenset({"turn.submitted", "turn.started"})
_ENDED: Final = frozenset({"output-available", "output-error", "cancelled"})


class TimelineRow(TimelineEntry):
    """An entry of the timeline, and whose it is."""

    thread_id: str | None = None


class UsageSums(msgspec.Struct):
    """Sums over all runs."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    records: int = 0


class _ThreadRun:
    """One projection and how many facts it holds."""

    def __init__(self, thread: str | None) -> None:
        self.projection = Projection(thread)
        self.facts = 0


class ProjectedThreads:
    """Takes facts of any number of threads; `kept` is whether holes were made on purpose."""

    def __init__(self, scratch: ScratchTables, *, kept: bool) -> None:
        self.usage = UsageSums()
        self._scratch = scratch
        self._kept = kept
        self._live: OrderedDict[str | None, _ThreadRun] = OrderedDict()

    def take(self, fact: Fact) -> None:
        thread = find_thread_id(fact)
        run = self._live.get(thread)
        if run is None or _is_run_over(run, fact):
            run = self._begin(thread)
        elif len(self._live) > 1:
            self._live.move_to_end(thread)
        run.facts += 1
        if self._kept:
            run.projection.replay(fact)
        else:
            run.projection.apply_ordered(fact)

    def close(self) -> None:
        """Write down what is still held."""
        while self._live:
            self._finish(next(iter(self._live)))

    def _begin(self, thread: str | None) -> _ThreadRun:
        if thread in self._live:
            self._finish(thread)
        elif len(self._live) >= LIVE_THREADS:
            self._finish(next(iter(self._live)))
        run = self._live[thread] = _ThreadRun(thread)
        return run

    def _finish(self, thread: str | None) -> None:
        projection = self._live.pop(thread).projection
        projection.close()
        state = projection.state
        name = f"{state.thread_id or ''}\0"
        put = self._scratch.put
        for entry in state.timeline:
            put(TIMELINE, name + entry.entry_id, _encode_timeline_row(entry, thread), _join_rows)
        model = thread_outline(state)
        for call in model.tool_calls:
            put(TOOLS, name + call.tool_call_id, msgspec.json.encode(call), _join_rows)
        for artifact in map(artifact_ref, state.artifacts.values()):
            put(ARTIFACTS, artifact.artifact_id, msgspec.json.encode(artifact), _join_rows)
        for item in map(evidence_ref, state.evidence.items.values()):
            put(EVIDENCE, item.evidence_id, msgspec.json.encode(item), _join_rows)
        for task in state.tasks:
            put(TASKS, name + task, msgspec.json.encode(task_snapshot(state, task)), _join_rows)
        put(THREADS, name, msgspec.json.encode(model))
        self._add(state)

    def _add(self, state: ProjectionState) -> None:
        found, usage = state.metrics.usage, self.usage
        usage.input_tokens += found.input_tokens
        usage.output_tokens += found.output_tokens
        usage.cost += found.total_cost_usd
        usage.records += found.records


def _is_run_over(run: _ThreadRun, fact: Fact) -> bool:
    if run.facts < RUN_FACTS:
        return False
    state = run.projection.state
    if run.facts >= LONGEST_RUN_FACTS:
        return not _has_open_requests(state)
    if fact.event_class not in _BEGINNINGS or state.runtime.active_turn_id is not None:
        return False
    return not _has_open_requests(state) and all(
        tool.state in _ENDED for tool in state.tools.values()
    )


def _has_open_requests(state: ProjectionState) -> bool:
    """Whether somebody was asked and has not answered; a later run would not know of it."""
    return any(action.status == "pending" for action in state.actions.values())


def _encode_timeline_row(entry: TimelineEntry, thread: str | None) -> bytes:
    fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
    return msgspec.json.encode(TimelineRow(**fields, thread_id=thread))


_LISTS: Final = ("sourceEventIds", "refs", "attempts", "subagents", "artifactRefs", "evidenceRefs")
_FIRST: Final = frozenset(
    {"sequence", "title", "startedAt", "createdAt", "eventClass", "turnId", "runtimeCorrelation"}
)
"""What the first run says holds; of anything else, the last."""


def _join_rows(existing: bytes, comes: bytes) -> bytes:
    """Two rows about one thing; a state that no fact told is not taken over."""
    old: dict[str, Any] = msgspec.json.decode(existing)
    new: dict[str, Any] = msgspec.json.decode(comes)
    for name, value in new.items():
        if name in _LISTS and old.get(name):
            old[name] = list(
                dict.fromkeys([*map(_to_hashable, old[name]), *map(_to_hashable, value)])
            )
        elif name not in old or (name not in _FIRST and value != "unknown"):
            old[name] = value
    return msgspec.json.encode({name: _to_plain(value) for name, value in old.items()})


def _to_hashable(value: Any) -> Any:
    return value if isinstance(value, str) else msgspec.json.encode(value)


def _to_plain(value: Any) -> Any:
    if isinstance(value, list):
        return [msgspec.json.decode(each) if isinstance(each, bytes) else each for each in value]  # pyright: ignore[reportUnknownVariableType]
    return value


Row = TypeVar("Row")

_NAMES: Final = tuple(ATTRIBUTES)
_ids_of: Final = attrgetter(*ATTRIBUTES.values())
_PAYLOAD_IDS: Final = {key: name for name, keys in PAYLOAD_NAMES.items() for key in keys}
_PAYLOAD_KEYS: Final = frozenset(_PAYLOAD_IDS)
_TURN_ENDS: Final = dict.fromkeys(TURN_TERMINALS, 0)
_STRENGTH: Final = ("failed", "waiting", "blocked", "running", "completed", "canceled", "idle")
_MODELS: Final = 100
_RUNTIMES: Final = 100


class PackDigest:
    """Takes every fact in order, then writes down what they come to."""

    def __init__(self, *, kept: bool) -> None:
        self.facts = 0
        self.last_created_at: str | None = None
        self._scratch = ScratchTables()
        self._runs = ProjectedThreads(self._scratch, kept=kept)
        self._gaps = GapFinder()
        self._classes: Counter[str] = Counter()
        self._models: dict[str, None] = {}
        self._runtimes: dict[str, None] = {}
        self._known: set[tuple[str, str]] = set()
        self._ids: tuple[str | None, ...] = ()
        self._first_created_at: str | None = None
        self._failures: list[ToolCallSummary] = []
        self._failed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._scratch.__exit__(kind, error, trace)

    def take(self, fact: Fact) -> None:
        """Take the next fact."""
        self.facts += 1
        self._classes[fact.event_class or "none"] += 1
        if self._first_created_at is None:
            self._first_created_at = fact.created_at
        self.last_created_at = fact.created_at
        self._note_ids(fact)
        row = build_fact_row(fact)
        if row is not None:
            self._scratch.append(*row)
        gap = self._gaps.take(fact)
        if gap is not None:
            self._scratch.append(GAPS, encode_gap(gap))
        if fact.event_class == "model.requested":
            _note_value(self._models, fact.payload.get("model"), _MODELS)
        _note_value(self._runtimes, fact.runtime_id, _RUNTIMES)
        self._runs.take(fact)

    def close(self, blobs: Iterable[BlobNote], removed: Mapping[str, int]) -> None:
        """All facts are there; what else is known of the run: its blobs, and removed facts."""
        self._runs.close()
        for gap in self._gaps.close(removed):
            self._scratch.append(GAPS, encode_gap(gap))
        for note in blobs:
            gap = find_blob_gap(note)
            if gap is not None:
                self._scratch.append(GAPS, encode_gap(gap))
        for row in self._scratch.rows(TOOLS):
            call = msgspec.json.decode(row, type=ToolCallSummary)
            if call.state == "output-error":
                self._failed += 1
                if len(self._failures) < LISTED:
                    self._failures.append(call)

    def sections(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Every section that has rows, with its lines."""
        for name in SECTIONS:
            if self._scratch.count(name):
                yield name, (row + b"\n" for row in self._scratch.rows(name))

    def summary(
        self, blobs: list[BlobNote], blob_count: int, journal: JournalAnchors | None
    ) -> EvidencePack:
        """The summary document."""
        totals = {_plain(name): self._scratch.count(name) for name in SECTIONS}
        return EvidencePack(
            schema_version=PACK_VERSION,
            runtime=self._runtime(),
            totals={name: count for name, count in totals.items() if count}
            | ({"blobs": blob_count} if blob_count else {}),
            threads=self._read_rows(THREADS, ThreadReadModel),
            timeline=self._read_rows(TIMELINE, TimelineEntry),
            tool_calls=self._read_rows(TOOLS, ToolCallSummary),
            tool_failures=self._failures,
            artifacts=self._read_rows(ARTIFACTS, ArtifactRef),
            context=self._read_rows(CONTEXT, ContextNote),
            decisions=self._read_rows(DECISIONS, DecisionNote),
            verifications=self._read_rows(VERIFICATIONS, Verification),
            reviews=self._read_rows(REVIEWS, ReviewRecord),
            evidence=self._read_rows(EVIDENCE, EvidenceRef),
            tasks=self._read_rows(TASKS, TaskSnapshot),
            known_gaps=self._read_rows(GAPS, KnownGap),
            runtime_correlation=self._correlation(),
            blobs=blobs,
            journal=journal,
        )

    def _read_rows(self, name: str, kind: type[Row]) -> list[Row]:
        return [msgspec.json.decode(row, type=kind) for row in self._scratch.rows(name, LISTED)]

    def _runtime(self) -> RuntimeSummary:
        ends, usage = _TURN_ENDS | self._classes, self._runs.usage
        return RuntimeSummary(
            status=self._status(),
            facts=self.facts,
            turns=max(self._classes["turn.submitted"], self._classes["turn.started"]),
            turns_completed=ends["turn.completed"],
            turns_failed=ends["turn.failed"],
            turns_canceled=ends["turn.canceled"],
            tool_calls=self._scratch.count(TOOLS),
            tool_failures=self._failed,
            actions=self._classes["action.required"],
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            models=list(self._models),
            runtime_ids=list(self._runtimes),
            classes=dict(sorted(self._classes.items())),
            cost=usage.cost if usage.records else None,
            started_at=self._first_created_at,
            ended_at=self.last_created_at,
        )

    def _status(self) -> str:
        rows = self._scratch.rows(THREADS)
        found = {msgspec.json.decode(row, type=ThreadReadModel).status for row in rows}
        return next((status for status in _STRENGTH if status in found), "idle")

    def _correlation(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for row in self._scratch.rows(IDS):
            each = msgspec.json.decode(row, type=CorrelationId)
            values = found.setdefault(each.name, [])
            if len(values) < LISTED_IDS:
                values.append(each.value)
        return dict(sorted(found.items()))

    def _note_ids(self, fact: Fact) -> None:
        ids = _ids_of(fact)
        if ids != self._ids:
            self._ids = ids
            for name, value in zip(_NAMES, ids, strict=True):
                if value:
                    self._note_id(name, value, fact.id)
        payload = fact.payload
        if payload and not _PAYLOAD_KEYS.isdisjoint(payload):
            for key in sorted(_PAYLOAD_KEYS & payload.keys()):
                value = payload[key]
                if isinstance(value, str) and value:
                    self._note_id(_PAYLOAD_IDS[key], value, fact.id)

    def _note_id(self, name: str, value: str, fact_id: str) -> None:
        if (name, value) in self._known:
            return
        if len(self._known) >= KNOWN_IDS:
            self._known.clear()
        self._known.add((name, value))
        row = CorrelationId(name=name, value=value, fact_id=fact_id)
        self._scratch.note(IDS, f"{name}\0{value}", msgspec.json.encode(row))


def _note_value(seen: dict[str, None], value: Any, limit: int) -> None:
    if isinstance(value, str) and value and len(seen) < limit:
        seen[value] = None


def _plain(name: str) -> str:
    return name.removesuffix(".ndjson")
