"""`Projection`: facts in, state and changes out; a pure function of the facts, one at a time.

The same facts give the same state, whole or in pieces, repeated or not, and in any order that
leaves no hole. A hole shows as stale; what was held back is taken in order once it is filled. A
fact that comes after the state went on without it is taken in its place all the same, as long as
the facts since are remembered; after that it is counted as late.
"""

from collections.abc import Callable, Container, Iterable
from itertools import chain
from typing import Any, Final

import msgspec

from factwire.facts.classes.class_tables import NO_CLASS
from factwire.facts.fact import Fact, id_of
from factwire.facts.outcomes import status_shown
from factwire.facts.refs import PLAIN_NAMES, nested_refs_of, refs_of
from factwire.facts.shapes import RepeatNumbers, encode_fact
from factwire.projection import (
    graph,
    hydration,
    messages,
    read_model_merge,
    thread_status,
    timeline,
    turn_closing,
    turns,
)
from factwire.projection.changes import Changes, Operation
from factwire.projection.diagnostics import add_remark, drop_remark, keep_diagnostic
from factwire.projection.draft import StateDraft, StateIndex
from factwire.projection.hydration import (
    LACKING_REASONS,
    Lane,
    RebuildPoint,
    RecentFacts,
    add_point,
    digest_body,
    insert_fact,
    needs_point,
    root_operations,
)
from factwire.projection.limits import (
    IGNORED_THREADS,
    LANES,
    REMEMBERED_FACTS,
    REMEMBERED_IDS,
    WAITING_CHILD_FACTS,
)
from factwire.projection.ordering import (
    RUN_OPENERS,
    child_thread_of,
    find_main_thread,
    is_of_no_run,
    order_facts,
)
from factwire.projection.read_models import ThreadReadModel
from factwire.projection.reducers import REDUCER_ROWS, ReducerRow
from factwire.projection.repair import (
    REPAIRS,
    cover_lane,
    covered_sequence,
    lacks_facts,
    settle_repair,
)
from factwire.projection.state import (
    ProjectionCheckpoint,
    ProjectionState,
    checkpoint_version,
    decode_checkpoint,
    empty_state,
    encode_checkpoint,
    encode_state,
    restore_lane,
    restore_recent,
    restore_waiting,
    save_lane,
)

_BEGINNINGS: Final = frozenset(
    {"session.created", "session.opened", "thread.started", "turn.submitted"}
)
"""Classes that a stream may begin with at any sequence. Any other at a sequence after 1 shows that
it was joined in the middle: even the start of a turn follows the prompt that asked for it.
"""

_REMARKS_ON_UNTAKEN: Final = frozenset(
    {"conflicting_fact", "sequence_conflict", "foreign_thread", "window_overflow"}
)
"""Codes of remarks that facts got which are not in the state."""

_COUNTED: Final = ("received", "repeated", "late", "dropped", "ignored")


class Projection:
    """The live projection of one thread.

    `thread_id` keeps facts of other threads out; without it, the first fact decides. `first` is
    the sequence that the thread is known to start with; without it, it starts with what comes
    first.
    """

    def __init__(self, thread_id: str | None = None, *, first: int | None = None) -> None:
        self._set_up(empty_state(thread_id), Lane(None, first))
        self._points = [_starting_point()] if first is None else []

    def _set_up(self, state: ProjectionState, main: Lane) -> None:
        self._draft = StateDraft(state, StateIndex(state))
        self._recent = RecentFacts()
        self._repeats = RepeatNumbers()
        self._main = main
        self._lanes: dict[str, Lane] = {}
        self._current = main
        self._points: list[RebuildPoint] = []
        self._first_thread = state.thread_id
        self._parent_thread: str | None = None
        self._waiting: dict[str, list[Fact]] = {}

    @classmethod
    def restore(cls, data: bytes) -> "Projection":
        """The projection that a checkpoint was taken of."""
        projection = cls()
        projection._load(decode_checkpoint(data))
        return projection

    def _load(self, saved: ProjectionCheckpoint) -> None:
        main, *others = (restore_lane(lane) for lane in saved.lanes)
        self._set_up(saved.state, main)
        self._recent = restore_recent(saved)
        self._repeats = RepeatNumbers(chain.from_iterable(saved.ids))
        self._points = saved.points
        self._first_thread, self._parent_thread = saved.first_thread, saved.parent_thread
        self._lanes = {lane.thread_id or "": lane for lane in others}
        self._current = self._lanes.get(saved.current or "", main)
        for fact in restore_waiting(saved):
            self._waiting.setdefault(fact.thread_id or "", []).append(fact)
        self._mark_reconciliation()

    @classmethod
    def from_read_model(cls, model: ThreadReadModel) -> "Projection":
        """A first screen from a read model alone; the stream goes on after its cursor."""
        projection = cls(model.thread_id)
        projection._points = []
        projection.repair(model)
        return projection

    def repair(self, model: ThreadReadModel) -> Changes:
        """Bring the state in line with a newer read model; an older one is only marked stale."""
        draft = self._draft
        ops: list[Operation] = []
        draft.ops = ops
        if read_model_merge.is_older_read_model(draft, model):
            read_model_merge.mark_read_model_stale(draft)
            return Changes(ops)
        cursor, whole = model.event_cursor, draft.state.hydration
        behind = cursor is not None and self._main.misses(cursor)
        missed = behind or not LACKING_REASONS.isdisjoint(whole.reasons)
        self._points = []
        if cursor is not None:
            # What arrived is shown, though the read model is newer and has the last word.
            self._take_all(self._main, self._main.give_up(cursor))
        read_model_merge.merge_read_model(draft, model, missed=missed)
        if cursor is not None:
            self._main.skip_to(cursor)
            if whole.cursor != cursor:
                whole.cursor = cursor
                ops.append(Operation("replace", f"{hydration.HYDRATION_PATH}/cursor", cursor))
            self._drain(self._main)
        read_model_merge.settle_doubts(draft, model, missed=missed)
        self._settle_order()
        return Changes(ops) if whole.event_count == 0 else self._changes_so_far(ops)

    def _changes_so_far(self, ops: list[Operation]) -> Changes:
        latest, whole = self.state.runtime, self.state.hydration
        return Changes(
            ops,
            latest.latest_event_id,
            latest.latest_sequence,
            whole.cursor,
            whole.event_count,
            whole.received,
        )

    def checkpoint(self) -> bytes:
        """The projection as bytes, to go on from later."""
        self._drop_old_points()
        return self._encode(self._points)

    def _encode(self, points: list[RebuildPoint]) -> bytes:
        taken = self._taken_since(points[0]) if points else None
        lanes = (self._main, *self._lanes.values())
        current = None if self._current is self._main else self._current.thread_id
        recent = self._recent.dump()
        return encode_checkpoint(
            ProjectionCheckpoint(
                version=checkpoint_version(),
                state=self._draft.state,
                lanes=[save_lane(lane) for lane in lanes],
                current=current,
                ids=recent["ids"],
                bodies=recent["bodies"],
                points=points,
                taken=[encode_fact(fact) for fact in taken or ()],
                first_thread=self._first_thread,
                parent_thread=self._parent_thread,
                waiting=[encode_fact(fact) for rows in self._waiting.values() for fact in rows],
            )
        )

    def snapshot(self) -> bytes:
        """The state as JSON: what changes are applied to."""
        return encode_state(self._draft.state)

    def _mark_reconciliation(self) -> None:
        """Whether texts can be called final, or facts before them are missing."""
        lanes, whole = self._list_lanes(), self._draft.state.hydration
        lost = any(lane.lost or lane.earlier for lane in lanes)
        doubted = whole.doubted_at
        has_messages = doubted is not None and doubted <= self._main.covered_messages
        reported = "gap_reported" in whole.reasons and not has_messages
        reported |= "child_gap_reported" in whole.reasons
        self._draft.memory.unreconciled = lost or reported

    @property
    def state(self) -> ProjectionState:
        """The state now. It changes with the next fact; a snapshot does not."""
        return self._draft.state

    def apply(self, fact: Fact) -> Changes:
        """Take one fact; what it changed."""
        draft = self._draft
        ops: list[Operation] = []
        draft.ops = ops
        state = draft.state
        whole = state.hydration
        whole.received += 1
        thread = fact.thread_id
        if thread is None:
            # A number counts in the thread's own order; only a fact without one goes along.
            lane = self._current if fact.sequence is None else self._main
        elif thread == state.thread_id:
            lane = self._current = self._main
        else:
            lane = self._other_lane(fact, thread)
            if lane is None:
                return Changes(ops, received=whole.received)
        if lane.beside is not None and fact.sequence is not None:
            lane = self._find_count(lane, fact, fact.sequence)
        recent, fact_id = self._recent, fact.id
        is_next = fact.sequence == lane.expected is not None and not lane.held
        if is_next and fact_id not in recent.ids and fact_id not in recent.old_ids:
            self._take(lane, fact)
            latest, cursor = state.runtime, whole.cursor
            event_id, sequence = latest.latest_event_id, latest.latest_sequence
            return Changes(ops, event_id, sequence, cursor, whole.event_count, whole.received)
        count, cursor = whole.event_count, whole.cursor
        self._arrange(lane, fact)
        whole = self.state.hydration
        if whole.event_count == count and whole.cursor == cursor:
            return Changes(ops, received=whole.received)
        return self._changes_so_far(ops)

    def apply_all(self, facts: Iterable[Fact]) -> None:
        """Take many facts, when nobody asks what each one changed: those that come in reverse order
        before all that are known are put in their places together.
        """
        early: dict[str, Fact] = {}
        start = self._main.start
        for fact in facts:
            if early and not self._is_earlier(fact, start, early):
                self._take_early([*early.values()])
                early = {}
            if not early:
                start = self._main.start
            if early or self._is_earlier(fact, start, early):
                early[fact.id], start = fact, fact.sequence
            else:
                self.apply(fact)
        self._take_early([*early.values()])

    def _is_earlier(self, fact: Fact, start: int | None, known: Container[str]) -> bool:
        """Whether a fact of this thread is a new one that belongs before its start, and stands in
        for no others, which would have to be known before them.
        """
        lane, sequence = self._main, fact.sequence
        return (
            start is not None
            and sequence is not None
            and sequence < start
            and fact.thread_id == self.state.thread_id
            and lane.beside is None
            and covered_sequence(fact) is None
            and fact.id not in known
            and fact.id not in self._recent
            and self._find_point(lane, sequence) is not None
        )

    def _take_early(self, early: list[Fact]) -> None:
        """Take facts in reverse order, each of which belongs before all that are known."""
        point = self._find_point(self._main, early[-1].sequence or 0) if early[1:] else None
        if point is None:
            for fact in early:
                self.apply(fact)
            return
        draft = self._draft
        draft.ops = []
        draft.state.hydration.received += len(early)
        self._current = self._main
        draft.begin()
        self._rebuild(point, self._main, early)
        self._settle_order()

    def apply_ordered(self, fact: Fact) -> Changes:
        """Take the next fact of a complete input that `order_facts` put in order.

        There, a sequence that is lower than the one before belongs to another run, which counts by
        itself.
        """
        lane, sequence = self._find_lane(fact), fact.sequence
        before: list[Operation] = []
        if lane is not None and sequence is not None and lane.expected is not None:
            latest = max(lane.held) if lane.held else lane.expected - 1
            is_lower = sequence < latest and not is_of_no_run(fact)
            if is_lower and fact.id not in self._recent:
                self._draft.ops = before
                self._begin_run(lane, fact, sequence)
                self._settle_order()
        changes = self.apply(fact)
        changes.ops[:0] = before
        return changes

    def close(self) -> Changes:
        """No more facts come: show what is held, and list what is missing before it."""
        ops: list[Operation] = []
        self._draft.ops = ops
        held = [lane for lane in self._list_lanes() if lane.held]
        for lane in held:
            self._give_up(lane)
        if not held:
            return Changes(ops)
        self._settle_order()
        return self._changes_so_far(ops)

    def replay(self, fact: Fact) -> Changes:
        """Take a fact as a journal hands it out: in order, with nothing missing before it but what
        was removed on purpose.
        """
        lane = self._find_lane(fact) or self._open_lane(fact)
        self._points = []
        if lane is not None and fact.sequence is not None and not lane.held:
            lane.pass_over(fact.sequence)
        return self.apply(fact)

    def _find_lane(self, fact: Fact) -> Lane | None:
        """The lane that a fact belongs to, if there is one already."""
        if fact.thread_id is None:
            return self._current if fact.sequence is None else self._main
        own = self.state.thread_id in (None, fact.thread_id)
        return self._main if own else self._lanes.get(fact.thread_id)

    def _list_lanes(self) -> list[Lane]:
        """Every lane: this thread's, those of its children, and those beside the runs of each."""
        lanes = (self._main, *self._lanes.values())
        return [each for lane in lanes for each in (lane, lane.beside) if each is not None]

    def _find_count(self, lane: Lane, fact: Fact, sequence: int) -> Lane:
        """The lane of a thread in whose count a fact is: that of the runs, or the one beside it."""
        is_beside = is_of_no_run(fact)
        if is_beside and fact.id in self._recent:
            return lane.beside or lane
        return lane.find_count(sequence, is_of_no_run=is_beside)

    def _open_lane(self, fact: Fact) -> Lane | None:
        """A lane for the thread of a fact that belongs to a child of this one."""
        thread = fact.thread_id
        if thread is None or not self._is_child(fact) or len(self._lanes) >= LANES:
            return None
        lane = self._lanes[thread] = Lane(thread)
        return lane

    def _other_lane(self, fact: Fact, thread: str) -> Lane | None:
        """The lane of a thread that is not the main one: this thread's own, a child's, or none."""
        state = self._draft.state
        if state.thread_id is None:
            thread_status.identify_thread(self._draft, fact)
            self._parent_thread = id_of(fact, "parentThreadId")
            self._current = self._main
            return self._main
        lane = self._lanes.get(thread) or self._open_lane(fact)
        if lane is None:
            self._draft.begin()
            self._count_ignored(fact, thread)
            self._count("dropped")
            if thread == self._parent_thread or child_thread_of(fact) == state.thread_id:
                self._doubt_thread()
            if sum(map(len, self._waiting.values())) < WAITING_CHILD_FACTS:
                self._waiting.setdefault(thread, []).append(fact)
            return None
        self._current = lane
        return lane

    def _doubt_thread(self) -> None:
        """The first fact decided which thread this is, and it was that of a child: facts of its
        parent are left out.
        """
        if self._first_thread is None:
            hydration.add_doubt(self._draft, "parent_left_out")
            self._settle_order()

    def _take_children(self, lane: Lane, fact: Fact) -> None:
        """Take what came of a thread before the fact that makes it a child of this one."""
        if lane is self._main and id_of(fact, "parentThreadId") in self._waiting:
            self._doubt_thread()
        if not self._draft.opened:
            return
        for thread, facts in list(self._waiting.items()):
            if not self._is_child(facts[0]) or len(self._lanes) >= LANES:
                continue
            del self._waiting[thread]
            child = self._lanes[thread] = Lane(thread)
            self._forget_ignored(thread, facts)
            for each in order_facts(facts):
                self._arrange(child, each)

    def _forget_ignored(self, thread: str, facts: list[Fact]) -> None:
        """A thread that was left out turns out to belong to this one."""
        draft, whole = self._draft, self._draft.state.hydration
        ignored = [key for key in whole.ignored if key != f"foreign_thread:{thread}"]
        draft.put(whole, hydration.HYDRATION_PATH, "ignored", ignored)
        draft.count(whole, hydration.HYDRATION_PATH, "dropped", -len(facts))
        drop_remark(draft, f"foreign_thread:{facts[0].id}:{thread}")

    def _is_child(self, fact: Fact) -> bool:
        """Whether a fact says that its thread belongs to this one."""
        parent, state = id_of(fact, "parentThreadId"), self._draft.state
        if parent is not None and (parent == state.thread_id or parent in self._lanes):
            return True
        session, task = id_of(fact, "parentSessionId"), id_of(fact, "parentTaskId")
        if (session is not None and session == state.session_id) or task in state.tasks:
            return True
        return self._draft.memory.subagents_by_thread.find(fact.thread_id) is not None

    def _count_ignored(self, fact: Fact, thread: str) -> None:
        key = f"foreign_thread:{thread}"
        known = self._draft.state.hydration.ignored
        if key not in known and len(known) < IGNORED_THREADS:
            message = f"facts of thread {thread} are not part of this one and were left out"
            add_remark(self._draft, fact, "foreign_thread", message, subject=thread)
            ignored = [*self._draft.state.hydration.ignored, key]
            self._draft.put(
                self._draft.state.hydration, hydration.HYDRATION_PATH, "ignored", ignored
            )

    def _take(self, lane: Lane, fact: Fact) -> None:
        """Reduce a fact whose place it is now."""
        draft, state = self._draft, self._draft.state
        latest, whole, recent, fact_id = state.runtime, state.hydration, self._recent, fact.id
        recent.ids[fact_id] = None
        bodies = recent.bodies
        bodies[fact_id] = fact
        if len(bodies) >= REMEMBERED_FACTS:
            recent.begin_generation()
        fact = turns.complete_fact(draft, fact, is_main=lane.thread_id is None)
        draft.opened = False
        row = REDUCER_ROWS.get(fact.event_class)  # pyright: ignore[reportArgumentType, reportCallIssue]
        if row is None or row.phase is None or (row.needs and not row.has_all(fact)):
            self._reduce(fact, row)
        else:
            row.streamed(draft, fact)
            if latest.phase != row.phase or latest.blocked_reason is not None:
                thread_status.resume_run(draft, fact, row.phase)
            if draft.opened:
                thread_status.identify_thread(draft, fact)
                self._record(fact, row)
            elif _may_have_refs(fact):
                timeline.add_streamed_refs(draft, fact)
        whole.event_count += 1
        latest.latest_event_id = fact_id
        sequence = fact.sequence
        if sequence is not None:
            lane.expected = sequence + 1
            if lane is self._main:
                latest.latest_sequence = whole.cursor = sequence
        if row is None or row.repairs or whole.status != "live":
            self._settle(lane, fact, row)
        if self._waiting:
            self._take_children(lane, fact)

    def _reduce(self, fact: Fact, row: ReducerRow | None) -> None:
        draft = self._draft
        if draft.state.session_id is None or draft.state.runtime_id is None:
            thread_status.identify_thread(draft, fact)
        if row is None:
            timeline.record_entry(draft, fact, NO_CLASS, status_shown(fact), nested_refs_of(fact))
            name = fact.event_class or "none"
            add_remark(
                draft, fact, "unknown_event_type", f"class {name} is not known", severity="info"
            )
            return
        if not row.has_all(fact):
            status, refs = status_shown(fact), refs_of(fact)
            timeline.record_entry(draft, fact, row.about, status, refs, degraded=True)
            lacking = " and ".join(need.expected for need in row.needs if not need.is_met(fact))
            add_remark(draft, fact, "missing_scope_id", f"{fact.event_class} needs {lacking}")
            return
        if row.repairs:
            draft.memory.lacks_facts = lacks_facts(draft, self._list_lanes(), fact)
        for reducer in row.reducers:
            reducer(draft, fact)
        if row.is_main:
            thread_status.apply_classification(draft, fact, row.about.phase)
        thread_status.settle_runtime(draft)
        self._record(fact, row)

    def _record(self, fact: Fact, row: ReducerRow) -> None:
        draft, status, refs = self._draft, status_shown(fact), refs_of(fact)
        timeline.record_entry(draft, fact, row.about, status, refs)
        graph.draw_graph(draft, fact, status, refs)
        if draft.ambiguous:
            draft.ambiguous = False
            message = "several texts are open, and the fact does not name the one that it means"
            add_remark(draft, fact, "part_ambiguous", message)

    def _count(self, field: str) -> None:
        self._draft.count(self.state.hydration, hydration.HYDRATION_PATH, field)

    def _arrange(self, lane: Lane, fact: Fact) -> None:
        """Find the place of a fact that does not simply come next."""
        sequence = fact.sequence
        if sequence is None:
            fact = self._repeats.number(fact)
        if fact.id in self._recent:
            self._handle_repeat(lane, fact)
        elif sequence is None:
            self._take(lane, fact)
        elif lane.expected is None:
            self._begin_lane(lane, fact, sequence)
            self._take(lane, fact)
        elif sequence < lane.expected:
            self._handle_late(lane, fact, sequence)
        elif sequence in lane.held:
            self._handle_held_twice(lane, fact, sequence)
        else:
            lane.hold(fact, sequence)
            cover_lane(lane, fact)
            if lane.passes_hole():
                self._keep_point()
            self._drain(lane)
            if lane.is_full:
                self._give_up(lane)
        self._settle_order()

    def _begin_lane(self, lane: Lane, fact: Fact, sequence: int) -> None:
        lane.begin(sequence)
        lane.runs += not is_of_no_run(fact)
        if sequence > 1 and fact.event_class not in _BEGINNINGS:
            reason = "starts_late" if lane.thread_id is None else "child_starts_late"
            hydration.add_doubt(self._draft, reason, sequence - 1 if lane is self._main else None)

    def _begin_run(self, lane: Lane, fact: Fact, sequence: int) -> None:
        """Another run of the thread counts by itself; what the one before misses stays listed."""
        if lane.runs == 0 and self._is_without_runs(lane):
            lane.part_from_runs()
        if lane.held:
            self._give_up(lane)
        lane.begin_again(sequence)
        self._begin_lane(lane, fact, sequence)
        self._points = []

    def _drain(self, lane: Lane) -> None:
        self._take_all(lane, lane.take_ready())

    def _take_all(self, lane: Lane, held: Iterable[tuple[int, Fact]]) -> None:
        for _, fact in held:
            if fact.id in self._recent:
                self._handle_repeat(lane, fact)
            else:
                self._take(lane, fact)

    def _give_up(self, lane: Lane) -> None:
        """Too much is held, or nothing more will come: show it, and say what is missing."""
        draft = self._draft
        draft.memory.unreconciled = True
        first = lane.expected
        for sequence, fact in lane.give_up():
            if fact.id in self._recent:
                self._handle_repeat(lane, fact)
            else:
                self._take(lane, fact)
            if first is not None:
                message = f"gave up waiting for sequences {first} to {sequence - 1}"
                add_remark(draft, fact, "window_overflow", message, severity="error")
                first = None

    def _handle_repeat(self, lane: Lane, fact: Fact) -> None:
        """An id that came before: the first body counts. Its place in the order is taken."""
        if self._recent.contradicts(fact):
            self._draft.begin()
            self._count("dropped")
            message = f"{fact.id} came before with another body; the first one counts"
            if f"conflicting_fact:{fact.id}" not in self.state.diagnostics.items:
                add_remark(self._draft, fact, "conflicting_fact", message)
        else:
            self._count("repeated")
        if fact.sequence is not None and fact.sequence == lane.expected:
            lane.expected = fact.sequence + 1
            if lane is self._main:
                self._draft.put(
                    self.state.hydration, hydration.HYDRATION_PATH, "cursor", fact.sequence
                )
            self._drain(lane)

    def _handle_held_twice(self, lane: Lane, fact: Fact, sequence: int) -> None:
        existing = lane.held[sequence]
        if digest_body(existing) == digest_body(fact):
            self._count("repeated")
            return
        self._draft.begin()
        message = f"sequence {sequence} is held for {existing.id}"
        if existing.id != fact.id:
            self._drop_rival(fact, message)
            return
        self._count("dropped")
        if f"conflicting_fact:{fact.id}" not in self.state.diagnostics.items:
            add_remark(self._draft, fact, "conflicting_fact", f"{message}; the first one counts")

    def _drop_rival(self, fact: Fact, message: str) -> None:
        """A fact whose place another one has: it is not shown, so the state is not whole."""
        self._count("dropped")
        hydration.add_doubt(self._draft, "sequence_conflict", fact.sequence)
        if f"sequence_conflict:{fact.id}" not in self.state.diagnostics.items:
            message = f"{message}; the first one counts"
            add_remark(self._draft, fact, "sequence_conflict", message)

    def _handle_late(self, lane: Lane, fact: Fact, sequence: int) -> None:
        """A fact behind the cursor whose id is not remembered."""
        self._draft.begin()
        if lane.has_missed(sequence):
            point = self._find_point(lane, sequence)
            if point is None:
                self._miss(lane, fact, sequence)
            else:
                self._rebuild(point, lane, [fact])
        elif self._opens_run(lane, fact, sequence):
            self._begin_run(lane, fact, sequence)
            self._take(lane, fact)
        elif _begins_beside(lane, fact, sequence):
            lane.beside = Lane(lane.thread_id, is_beside=True)
            self._points = []
            self._arrange(lane.beside, fact)
        elif self._remembers(lane, sequence):
            self._drop_rival(fact, f"sequence {sequence} belongs to another fact")
        else:
            self._count("repeated")

    def _miss(self, lane: Lane, fact: Fact, sequence: int) -> None:
        """A fact came too late to be taken; what a read model knows of is not in doubt."""
        self._recent.ids[fact.id] = None
        self._count("late")
        before = lane.start is not None and sequence < lane.start
        if not before:
            hydration.add_doubt(self._draft, "late_facts", sequence)
        elif not lane.is_covered(sequence, sequence):
            hydration.add_doubt(self._draft, "starts_late", sequence)

    def _opens_run(self, lane: Lane, fact: Fact, sequence: int) -> bool:
        """Whether a fact begins a run that is new and so may count by itself; of a turn without a
        run, only one that starts again where the thread started shows that.
        """
        run, turn = id_of(fact, "runId"), id_of(fact, "turnId")
        restarts = turn is not None and sequence <= max(1, lane.start or 0)
        if fact.event_class not in RUN_OPENERS or (run is None and not restarts):
            return False
        return (f"run:{run}" if turn is None else f"turn:{turn}") not in self.state.graph.nodes

    def _is_without_runs(self, lane: Lane) -> bool:
        """Whether all facts of a thread so far are of no run, as far as they are remembered."""
        taken = self._recent.newest(self.state.hydration.event_count)
        thread = lane.thread_id or self.state.thread_id
        return taken is not None and all(
            is_of_no_run(each) for each in taken if each.thread_id in (None, thread)
        )

    def _remembers(self, lane: Lane, sequence: int) -> bool:
        """Whether the id that was taken at a place would still be known."""
        if self._lanes:
            return self._draft.state.hydration.event_count <= REMEMBERED_IDS
        return lane.expected is not None and sequence >= lane.expected - REMEMBERED_IDS

    def _taken_since(self, point: RebuildPoint) -> list[Fact] | None:
        return self._recent.newest(self.state.hydration.event_count - point.event_count)

    def _drop_old_points(self) -> None:
        while self._points and self._taken_since(self._points[0]) is None:
            del self._points[0]

    def _keep_point(self) -> None:
        """Remember the state from before facts that are missing, to go back to."""
        self._drop_old_points()
        count = self.state.hydration.event_count
        if needs_point(self._points, count):
            expected = {lane.key: lane.expected for lane in self._list_lanes()}
            point = RebuildPoint(
                data=self._encode([]),
                event_count=count,
                expected={key: place for key, place in expected.items() if place is not None},
            )
            self._points = add_point(self._points, point)

    def _find_point(self, lane: Lane, sequence: int) -> RebuildPoint | None:
        self._drop_old_points()
        usable = (each for each in reversed(self._points) if each.is_before(lane.key, sequence))
        return next(usable, None)

    def _rebuild(self, point: RebuildPoint, lane: Lane, late: list[Fact]) -> None:
        """Go back to a point and take the facts since then again, with late ones in place."""
        taken = self._taken_since(point) or []
        ops, before, old = self._draft.ops, self._to_plain(), self.state
        earlier = list(ops)
        past = {each.key: each for each in self._list_lanes()}
        recent, current, points = self._recent, self._current.thread_id, self._points
        waiting, repeats, parent = self._waiting, self._repeats, self._parent_thread
        self._go_back(point, past)
        facts = taken
        for fact in late:
            facts = insert_fact(facts, fact, fact.sequence or 0, _is_in_count_of(lane, fact))
        for each in facts:
            self._take_again(each, past)
        self._keep_counts(old, point)
        recent.ids.update((fact.id, None) for fact in late)
        recent.replace_newest(len(taken), facts)
        self._recent = recent
        self._points = points[: points.index(point) + 1]
        for each in self._list_lanes():
            if each.key in past:
                each.held = past[each.key].held
            self._drain(each)
        self._current = self._lanes.get(current or "", self._main)
        self._waiting, self._repeats, self._parent_thread = waiting, repeats, parent
        self._settle_order()
        ops[:] = [*earlier, *root_operations(before, self._to_plain())]
        self._draft.ops = ops

    def _go_back(self, point: RebuildPoint, past: dict[str, Lane]) -> None:
        """The state at a point, with nothing held; what came to be covered since stays so."""
        if point.data is None:
            self._set_up(empty_state(self._first_thread), Lane(None))
        else:
            self._load(decode_checkpoint(point.data))
        self._waiting = {}
        for lane in self._list_lanes():
            lane.held = {}
            lane.cover_as(past.get(lane.key))
        self._settle_order()

    def _take_again(self, fact: Fact, past: dict[str, Lane]) -> None:
        """Take a fact whose place in the order is settled, past what is missing before it."""
        lane = self._find_lane(fact)
        if lane is None:
            lane = self._other_lane(fact, fact.thread_id or "") or self._main
        self._current = lane
        if fact.sequence is not None:
            lane = self._find_count(lane, fact, fact.sequence)
            if lane.expected is None:
                lane.cover_as(past.get(lane.key))
                self._begin_lane(lane, fact, fact.sequence)
            lane.pass_hole(fact.sequence)
        self._take(lane, fact)

    def _keep_counts(self, old: ProjectionState, point: RebuildPoint) -> None:
        """Keep what is known of facts that are not in the state."""
        whole = self.state.hydration
        for field in _COUNTED:
            setattr(whole, field, getattr(old.hydration, field))
        for reason in ("late_facts", "sequence_conflict", "parent_left_out", "starts_late"):
            if reason in old.hydration.reasons and (reason != "starts_late" or point.data):
                hydration.add_doubt(self._draft, reason, old.hydration.doubted_at)
        for key, remark in old.diagnostics.items.items():
            if remark.code in _REMARKS_ON_UNTAKEN and key not in self.state.diagnostics.items:
                keep_diagnostic(self._draft, remark)

    def _to_plain(self) -> dict[str, Any]:
        return msgspec.json.decode(self.snapshot())

    def _settle(self, lane: Lane, fact: Fact, row: ReducerRow | None) -> None:
        """After a fact that may have closed a gap, or while not all is well."""
        if row is not None and row.repairs:
            cover_lane(lane, fact)
        if fact.event_class in REPAIRS:
            settle_repair(self._draft, lane, self._list_lanes(), fact)
        self._settle_order()

    def _settle_order(self) -> None:
        draft = self._draft
        lanes = self._list_lanes()
        waited = draft.memory.unreconciled
        self._mark_reconciliation()
        if waited and not draft.memory.unreconciled:
            messages.settle_messages(draft)
            turn_closing.end_settled_texts(draft)
        hydration.settle_hydration(draft, lanes)


def project(facts: Iterable[Fact], thread_id: str | None = None) -> ProjectionState:
    """The state that a complete input comes to, whatever order its facts are in."""
    items = list(facts)
    projection = Projection(thread_id or find_main_thread(items))
    for fact in order_facts(items, projection.state.thread_id):
        projection.apply_ordered(fact)
    projection.close()
    return projection.state


def _may_have_refs(piece: Fact) -> bool:
    """Whether a piece of a text may state refs beside its text."""
    listed = piece.ref_ids or piece.artifact_refs or piece.evidence_refs or piece.evidence_id
    return bool(listed or piece.extra) or not PLAIN_NAMES.issuperset(piece.payload)


def _begins_beside(lane: Lane, fact: Fact, sequence: int) -> bool:
    """Whether a fact of no run, whose place a run has, shows that such facts count by themselves:
    it starts where the run does, or runs count by themselves, too.
    """
    if lane.is_beside or lane.beside is not None or not is_of_no_run(fact):
        return False
    return lane.runs > 1 or (lane.runs == 1 and sequence == lane.start)


def _is_in_count_of(lane: Lane, fact: Fact) -> Callable[[Fact], bool]:
    """Tells which other facts are of the thread and the count of one."""
    is_apart = lane.is_beside or lane.beside is not None
    is_beside = is_of_no_run(fact)
    return lambda other: (
        other.thread_id == fact.thread_id and (not is_apart or is_of_no_run(other) == is_beside)
    )


def _starting_point() -> RebuildPoint:
    return RebuildPoint(data=None, event_count=0, expected={})
