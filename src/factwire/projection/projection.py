"""`Projection`: facts in, state and changes out; a pure function of the facts, one at a time.

The same facts give the same state, whole or in pieces, repeated or not, and in any order that
leaves no hole. A hole shows as stale; what was held back is taken in order once it is filled.
"""

from collections.abc import Iterable

from factwire.facts.classes.class_tables import NO_CLASS
from factwire.facts.fact import Fact
from factwire.projection import (
    graph,
    hydration,
    messages,
    read_model_merge,
    thread_status,
    timeline,
)
from factwire.projection.changes import Changes, Operation
from factwire.projection.diagnostics import add_remark
from factwire.projection.draft import StateDraft, StateIndex
from factwire.projection.hydration import Lane, RecentFacts
from factwire.projection.limits import IGNORED_THREADS, LANES, REMEMBERED_IDS
from factwire.projection.read_models import ThreadReadModel
from factwire.projection.reducers import REDUCER_ROWS, ReducerRow
from factwire.projection.repair import REPAIRS, covered_sequence
from factwire.projection.state import (
    STATE_VERSION,
    ProjectionCheckpoint,
    ProjectionState,
    decode_checkpoint,
    empty_state,
    encode_checkpoint,
    encode_state,
    restore_lane,
    restore_recent,
    save_lane,
)


class Projection:
    """The live projection of one thread.

    `thread_id` keeps facts of other threads out; without it, the first fact decides. `first` is
    the sequence that the thread is known to start with; without it, it starts with what comes
    first.
    """

    def __init__(self, thread_id: str | None = None, *, first: int | None = None) -> None:
        self._set_up(empty_state(thread_id), Lane(None, first))

    def _set_up(self, state: ProjectionState, main: Lane) -> None:
        self._draft = StateDraft(state, StateIndex(state))
        self._recent = RecentFacts()
        self._main = main
        self._lanes: dict[str, Lane] = {}
        self._current = main

    @classmethod
    def restore(cls, data: bytes) -> "Projection":
        """The projection that a checkpoint was taken of."""
        saved = decode_checkpoint(data)
        projection = cls()
        main, *others = (restore_lane(lane) for lane in saved.lanes)
        projection._set_up(saved.state, main)
        projection._recent = restore_recent(saved)
        projection._lanes = {lane.thread_id or "": lane for lane in others}
        projection._current = projection._lanes.get(saved.current or "", main)
        projection._mark_reconciliation()
        return projection

    @classmethod
    def from_read_model(cls, model: ThreadReadModel) -> "Projection":
        """A first screen from a read model alone; the stream goes on after its cursor."""
        projection = cls(model.thread_id)
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
        read_model_merge.merge_read_model(
            draft, model, missed=behind or "gap_reported" in whole.reasons
        )
        if cursor is not None:
            self._main.skip_to(cursor)
            if whole.cursor != cursor:
                whole.cursor = cursor
                ops.append(Operation("replace", f"{hydration.HYDRATION_PATH}/cursor", cursor))
            self._drain(self._main)
        read_model_merge.settle_doubts(draft, model)
        self._settle_order()
        if whole.event_count == 0:
            return Changes(ops)
        latest = draft.state.runtime
        return Changes(
            ops, latest.latest_event_id, latest.latest_sequence, whole.cursor, whole.event_count
        )

    def checkpoint(self) -> bytes:
        """The projection as bytes, to go on from later."""
        lanes = [self._main, *self._lanes.values()]
        current = None if self._current is self._main else self._current.thread_id
        recent = self._recent.dump()
        return encode_checkpoint(
            ProjectionCheckpoint(
                version=STATE_VERSION,
                state=self._draft.state,
                lanes=[save_lane(lane) for lane in lanes],
                current=current,
                ids=recent["ids"],
                bodies=recent["bodies"],
            )
        )

    def snapshot(self) -> bytes:
        """The state as JSON: what changes are applied to."""
        return encode_state(self._draft.state)

    def _mark_reconciliation(self) -> None:
        """Whether texts can be called final, or facts before them are missing."""
        lost = any(lane.lost for lane in (self._main, *self._lanes.values()))
        reported = "gap_reported" in self._draft.state.hydration.reasons
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
        thread = fact.thread_id
        if thread is None:
            lane = self._current
        elif thread == state.thread_id:
            lane = self._current = self._main
        else:
            lane = self._other_lane(fact, thread)
            if lane is None:
                return Changes(ops)
        whole = state.hydration
        count, cursor = whole.event_count, whole.cursor
        recent, fact_id = self._recent, fact.id
        is_next = fact.sequence == lane.expected is not None and not lane.held
        if is_next and fact_id not in recent.ids and fact_id not in recent.old_ids:
            self._take(lane, fact)
        else:
            self._arrange(lane, fact)
        if whole.event_count == count and whole.cursor == cursor:
            return Changes(ops)
        latest = state.runtime
        return Changes(
            ops, latest.latest_event_id, latest.latest_sequence, whole.cursor, whole.event_count
        )

    def apply_all(self, facts: Iterable[Fact]) -> None:
        """Take many facts, when nobody asks what each one changed."""
        for fact in facts:
            self.apply(fact)

    def replay(self, fact: Fact) -> Changes:
        """Take a fact as a journal hands it out: in order, with nothing missing before it but what
        was removed on purpose.
        """
        lane: Lane | None = self._current
        if fact.thread_id is not None:
            own = fact.thread_id == self.state.thread_id
            lane = self._main if own else self._lanes.get(fact.thread_id)
        if lane is not None and fact.sequence is not None and not lane.held:
            lane.pass_over(fact.sequence)
        return self.apply(fact)

    def _other_lane(self, fact: Fact, thread: str) -> Lane | None:
        """The lane of a thread that is not the main one: this thread's own, a child's, or none."""
        state = self._draft.state
        if state.thread_id is None:
            thread_status.identify_thread(self._draft, fact)
            self._current = self._main
            return self._main
        lane = self._lanes.get(thread)
        if lane is None and self._is_child(fact) and len(self._lanes) < LANES:
            lane = self._lanes[thread] = Lane(thread)
        if lane is None:
            self._draft.begin()
            self._count_ignored(fact, thread)
            return None
        self._current = lane
        return lane

    def _is_child(self, fact: Fact) -> bool:
        """Whether a fact says that its thread belongs to this one."""
        parent, state = fact.parent_thread_id, self._draft.state
        existing = (thread.thread_id for thread in state.subagents.threads.values())
        return parent == state.thread_id or parent in self._lanes or fact.thread_id in existing

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
        latest, whole = state.runtime, state.hydration
        self._recent.add(fact)
        draft.opened = False
        row = REDUCER_ROWS.get(fact.event_class)  # pyright: ignore[reportArgumentType, reportCallIssue]
        if row is None or row.phase is None or (row.needs and not row.has_all(fact)):
            self._reduce(fact, row)
        else:
            row.streamed(draft, fact)
            if latest.phase != row.phase or latest.blocked_reason is not None:
                thread_status.resume_run(draft, row.phase)
            if draft.opened:
                thread_status.identify_thread(draft, fact)
                self._record(fact, row)
        whole.event_count += 1
        latest.latest_event_id = fact.id
        sequence = fact.sequence
        if sequence is not None:
            lane.expected = sequence + 1
            if lane is self._main:
                latest.latest_sequence = whole.cursor = sequence
        if row is None or row.repairs or whole.status != "live":
            self._settle(lane, fact, row)

    def _reduce(self, fact: Fact, row: ReducerRow | None) -> None:
        draft = self._draft
        if draft.state.session_id is None or draft.state.runtime_id is None:
            thread_status.identify_thread(draft, fact)
        if row is None:
            timeline.record_entry(draft, fact, NO_CLASS)
            name = fact.event_class or "none"
            add_remark(
                draft, fact, "unknown_event_type", f"class {name} is not known", severity="info"
            )
            return
        if not row.has_all(fact):
            timeline.record_entry(draft, fact, row.about, degraded=True)
            lacking = " and ".join(need.expected for need in row.needs if not need.is_met(fact))
            add_remark(draft, fact, "missing_scope_id", f"{fact.event_class} needs {lacking}")
            return
        for reducer in row.reducers:
            reducer(draft, fact)
        if row.is_main:
            thread_status.apply_classification(draft, fact, row.about.phase)
        thread_status.settle_runtime(draft)
        self._record(fact, row)

    def _record(self, fact: Fact, row: ReducerRow) -> None:
        timeline.record_entry(self._draft, fact, row.about)
        graph.draw_graph(self._draft, fact)

    def _arrange(self, lane: Lane, fact: Fact) -> None:
        """Find the place of a fact that does not simply come next."""
        sequence = fact.sequence
        if fact.id in self._recent:
            self._handle_repeat(lane, fact)
        elif sequence is None:
            self._take(lane, fact)
        elif lane.expected is None:
            lane.begin(sequence)
            self._take(lane, fact)
        elif sequence < lane.expected:
            self._handle_late(lane, fact, sequence)
        elif sequence in lane.held:
            self._handle_held_twice(lane, fact, sequence)
        else:
            lane.hold(fact, sequence)
            covered = covered_sequence(fact)
            if covered is not None:
                lane.cover(covered)
            self._drain(lane)
            if lane.is_full:
                self._give_up(lane)
        self._settle_order()

    def _drain(self, lane: Lane) -> None:
        for _, fact in lane.take_ready():
            if fact.id in self._recent:
                self._handle_repeat(lane, fact)
            else:
                self._take(lane, fact)

    def _give_up(self, lane: Lane) -> None:
        """Too much is held: show it, and say what is missing."""
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
            message = f"{fact.id} came before with another body; the first one counts"
            if f"conflicting_fact:{fact.id}" not in self._draft.state.diagnostics.items:
                add_remark(self._draft, fact, "conflicting_fact", message)
        if fact.sequence is not None and fact.sequence == lane.expected:
            lane.expected = fact.sequence + 1
            if lane is self._main:
                self._draft.state.hydration.cursor = fact.sequence
            self._drain(lane)

    def _handle_held_twice(self, lane: Lane, fact: Fact, sequence: int) -> None:
        existing = lane.held[sequence]
        if existing != fact:
            self._draft.begin()
            code = "conflicting_fact" if existing.id == fact.id else "sequence_conflict"
            message = f"sequence {sequence} is held for {existing.id}; the first one counts"
            if f"{code}:{fact.id}" not in self._draft.state.diagnostics.items:
                add_remark(self._draft, fact, code, message)

    def _handle_late(self, lane: Lane, fact: Fact, sequence: int) -> None:
        """A fact behind the cursor whose id is not remembered."""
        self._draft.begin()
        whole = self._draft.state.hydration
        start = lane.start or 0
        if sequence <= lane.covered:
            return
        if sequence < start or lane.is_lost(sequence):
            self._recent.add(fact)
            self._draft.count(whole, hydration.HYDRATION_PATH, "late")
            if sequence < start:
                hydration.add_doubt(self._draft, "starts_late")
        elif self._remembers(lane, sequence):
            message = f"sequence {sequence} belongs to another fact; the first one counts"
            if f"sequence_conflict:{fact.id}" not in self._draft.state.diagnostics.items:
                add_remark(self._draft, fact, "sequence_conflict", message)

    def _remembers(self, lane: Lane, sequence: int) -> bool:
        """Whether the id that was taken at a place would still be known."""
        if self._lanes:
            return self._draft.state.hydration.event_count <= REMEMBERED_IDS
        return lane.expected is not None and sequence >= lane.expected - REMEMBERED_IDS

    def _settle(self, lane: Lane, fact: Fact, row: ReducerRow | None) -> None:
        """After a fact that may have closed a gap, or while not all is well."""
        covered = covered_sequence(fact) if row is not None and row.repairs else None
        if covered is not None:
            lane.cover(covered)
            hydration.clear_doubts(self._draft, covered)
        elif fact.event_class in REPAIRS:
            hydration.clear_doubts(self._draft)
        self._settle_order()

    def _settle_order(self) -> None:
        draft = self._draft
        lanes = [self._main, *self._lanes.values()]
        waited = draft.memory.unreconciled
        self._mark_reconciliation()
        if waited and not draft.memory.unreconciled:
            messages.settle_messages(draft)
        hydration.settle_hydration(draft, lanes)


def project(facts: Iterable[Fact], thread_id: str | None = None) -> ProjectionState:
    """The state that facts come to."""
    projection = Projection(thread_id)
    projection.apply_all(facts)
    return projection.state
