"""Whether a state shows all there is: the order of facts, repeats, and what is missing.

| status | means |
|---|---|
| idle | no fact yet |
| hydrating | restored from a read model; no fact since |
| live | every fact up to the cursor is in the state |
| stale | facts are missing and what came after them waits, or a change could not be applied |
| repairing | the source says that it is repairing the stream |
| degraded | so much came after a hole that it was shown without what is missing |

A lane orders the facts of one thread by `sequence`. Where each run of the thread counts by itself,
facts of no run may count beside the runs, in a lane of their own. What comes after a hole is held
in a bounded window until the hole is filled or a snapshot covers it; past the window the hole is
lost. A snapshot covers what it carries: one of messages lets the thread go on, but the hole stays
listed. Ids of recent facts are kept so that a repeat changes nothing but its count, and bodies so
that a contradiction is noticed.

Every fact that comes is counted once: `received` is the sum of `event_count` (taken), `repeated`,
`late` (it came too late to be taken), `dropped` (of another thread, or in conflict with one that
was taken) and `held`.

A fact that came late is taken in its right place by going back. A projection that goes on past
missing facts keeps the state from before them, as a point to go back to. As long as it remembers
every fact that it took since, a missing one that comes after all is put among them, and the state
is projected again from there. For a stream without holes, only its start is kept.
"""

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.json_patch import escape_key
from factwire.facts.limits import SEQUENCE_MAX
from factwire.projection.changes import Operation
from factwire.projection.limits import (
    GAPS_KEPT,
    HELD_FACTS,
    REBUILD_POINTS,
    REBUILD_SPACING,
    REMEMBERED_IDS,
)
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft


HYDRATION_PATH: Final = "/hydration"

HydrationStatus = Literal["idle", "hydrating", "live", "stale", "repairing", "degraded"]


LACKING_REASONS: Final = frozenset(
    {"gap_reported", "starts_late", "late_facts", "sequence_conflict", "messages_missing"}
    | {"child_gap_reported", "parent_left_out"}
)
"""Reasons that mean that facts of the thread are not in the state."""


class Gap(View):
    """Sequences that are missing, both ends included; `thread_id` where it is another thread's."""

    from_sequence: int
    to_sequence: int
    thread_id: str | None = None


class Hydration(View):
    """How whole the state is. `cursor` is the last sequence up to which nothing is missing."""

    status: HydrationStatus
    cursor: int | None
    received: int
    event_count: int
    repeated: int
    late: int
    dropped: int
    held: int
    gaps: list[Gap]
    reasons: list[str]
    ignored: list[str]
    doubted_at: int | None = None


def idle_hydration() -> Hydration:
    return Hydration(
        status="idle",
        cursor=None,
        received=0,
        event_count=0,
        repeated=0,
        late=0,
        dropped=0,
        held=0,
        gaps=[],
        reasons=[],
        ignored=[],
    )


def name_doubt(draft: "StateDraft", fact: Fact, reason: str) -> str:
    """What a reason to doubt is called where a fact gives it: a child's thread has its own."""
    return reason if fact.thread_id in (None, draft.state.thread_id) else f"{_OF_CHILD}{reason}"


def is_of_child(reason: str) -> bool:
    """Whether a reason is about the thread of a child."""
    return reason.startswith(_OF_CHILD)


_OF_CHILD: Final = "child_"


def add_doubt(draft: "StateDraft", reason: str, at: int | None = None) -> None:
    """Something keeps the state from being whole until a snapshot or a repair comes that covers
    the place `at` where it showed.
    """
    hydration = draft.state.hydration
    if reason not in hydration.reasons:
        draft.put(hydration, HYDRATION_PATH, "reasons", [*hydration.reasons, reason])
    if at is not None:
        draft.put(hydration, HYDRATION_PATH, "doubted_at", max(at, hydration.doubted_at or at))


def clear_doubt(draft: "StateDraft", reason: str) -> None:
    """One thing that was in doubt is settled."""
    reasons = draft.state.hydration.reasons
    if reason in reasons:
        others = [other for other in reasons if other != reason]
        draft.put(draft.state.hydration, HYDRATION_PATH, "reasons", others)
        if not others:
            draft.put(draft.state.hydration, HYDRATION_PATH, "doubted_at", None)


def settle_hydration(draft: "StateDraft", lanes: "list[Lane]") -> None:
    """Let the status follow from what is held, lost and in doubt."""
    hydration = draft.state.hydration
    gaps = [gap for lane in lanes for gap in lane.gaps()]
    draft.put(hydration, HYDRATION_PATH, "held", sum(len(lane.held) for lane in lanes))
    draft.put(hydration, HYDRATION_PATH, "gaps", gaps[:GAPS_KEPT])
    draft.put(hydration, HYDRATION_PATH, "status", _hydration_status(hydration, lanes))


def _hydration_status(hydration: Hydration, lanes: "list[Lane]") -> HydrationStatus:
    if not {"repair_started", "child_repair_started"}.isdisjoint(hydration.reasons):
        return "repairing"
    if any(lane.lost or lane.earlier for lane in lanes):
        return "degraded"
    if hydration.held or hydration.gaps or hydration.reasons:
        return "stale"
    if hydration.event_count:
        return "live"
    return "hydrating" if hydration.cursor is not None else "idle"


BEFORE_ANY_SEQUENCE: Final = -SEQUENCE_MAX - 1
"""Before any sequence."""

_BESIDE: Final = "\n"
"""What follows the thread in the key of a lane beside the runs."""


Sequences = tuple[int, int]
"""A range of sequences, both ends included."""


class Lane:
    """One thread's place in its own order.

    Sequences that were passed over are `skipped` where a repair or a whole read model stands in
    for them, `uncovered` where a snapshot carries only the messages of them, and `lost` where
    nothing does. `earlier` are those of runs before the one that counts now.

    `covered` are the ranges that a repair or a read model stands in for, whether or not anything is
    missing in them.

    `runs` is how many runs began a count here. `beside` is the lane of the facts of no run, once
    they have shown that they count by themselves. Up to `shared`, such facts also fitted the count
    of the run; what the run goes on with decides.
    """

    __slots__ = (
        "beside",
        "covered",
        "covered_messages",
        "earlier",
        "expected",
        "held",
        "is_beside",
        "lost",
        "runs",
        "shared",
        "skipped",
        "start",
        "thread_id",
        "uncovered",
    )

    def __init__(
        self, thread_id: str | None, start: int | None = None, *, is_beside: bool = False
    ) -> None:
        self.thread_id = thread_id
        self.is_beside = is_beside
        self.beside: Lane | None = None
        self.runs = 0
        self.shared = BEFORE_ANY_SEQUENCE
        self.start = start
        self.expected = start
        self.held: dict[int, Fact] = {}
        self.lost: list[Sequences] = []
        self.uncovered: list[Sequences] = []
        self.skipped: list[Sequences] = []
        self.earlier: list[Sequences] = []
        self.covered: list[Sequences] = []
        self.covered_messages = BEFORE_ANY_SEQUENCE

    @property
    def key(self) -> str:
        """What the lane goes by among those of a projection; the main one goes by `""`."""
        return f"{self.thread_id or ''}{_BESIDE if self.is_beside else ''}"

    def begin(self, sequence: int) -> None:
        """The first fact of a lane that starts wherever it starts."""
        self.start = self.expected = sequence

    def begin_again(self, sequence: int) -> None:
        """Another run counts by itself, from `sequence` on."""
        self.earlier = merge_ranges([*self.earlier, *self.lost, *self.uncovered])
        self.lost, self.uncovered, self.skipped, self.covered = [], [], [], []
        self.covered_messages = self.shared = BEFORE_ANY_SEQUENCE
        self.begin(sequence)

    def part_from_runs(self) -> None:
        """What was counted so far is of no run, and goes on beside the runs."""
        self.beside = Lane(self.thread_id, self.start, is_beside=True)
        self.beside.expected, self.beside.held = self.expected, self.held
        self.beside.lost, self.beside.uncovered = self.lost, self.uncovered
        self.beside.skipped, self.beside.covered = self.skipped, self.covered
        self.beside.covered_messages = self.covered_messages
        self.held, self.lost, self.uncovered = {}, [], []

    def find_count(self, sequence: int, *, is_of_no_run: bool) -> "Lane":
        """The lane, this one or the one beside it, in whose count a fact is the next."""
        beside, expected = self.beside, self.expected
        if beside is None or expected is None:
            return self
        if is_of_no_run:
            if sequence != max(expected, self.shared + 1):
                return beside
            if sequence != beside.expected:
                return self
            self.shared = sequence
            return beside
        if expected <= self.shared == sequence - 1:
            self.expected, beside.expected = sequence, expected
        if sequence == self.expected:
            self.shared = BEFORE_ANY_SEQUENCE
        return self

    def hold(self, fact: Fact, sequence: int) -> None:
        self.held[sequence] = fact

    @property
    def is_full(self) -> bool:
        return len(self.held) > HELD_FACTS

    def take_ready(self) -> Iterator[tuple[int, Fact]]:
        """Take out what was held and is next now, passing over holes that are covered."""
        while self.held and self.expected is not None:
            sequence = self.expected
            if sequence not in self.held:
                following = min(self.held)
                if not self._can_pass((sequence, following - 1)):
                    return
                self.pass_hole(following)
                sequence = following
            yield sequence, self.held.pop(sequence)

    def passes_hole(self) -> bool:
        """Whether what is ready comes after facts that are missing."""
        if not self.held or self.expected is None or self.expected in self.held:
            return False
        return self._can_pass((self.expected, min(self.held) - 1))

    def _can_pass(self, hole: Sequences) -> bool:
        return self.is_covered(*hole) or hole[1] <= self.covered_messages

    def is_covered(self, first: int, last: int) -> bool:
        """Whether a repair or a read model stands in for all of these sequences."""
        return any(start <= first and last <= end for start, end in self.covered)

    def lacks_beginning(self) -> bool:
        """Whether the thread was joined in the middle and nothing stands in for what was before."""
        return self.start is not None and self.start > 1 and not self.is_covered(1, self.start - 1)

    def give_up(self, cursor: int = SEQUENCE_MAX) -> Iterator[tuple[int, Fact]]:
        """Take out all that was held, up to `cursor`, and pass over the holes in between."""
        for sequence in sorted(place for place in self.held if place <= cursor):
            if sequence in self.held:  # What follows a repeat goes out along with it.
                self.pass_hole(sequence)
                yield sequence, self.held.pop(sequence)

    def pass_hole(self, sequence: int) -> None:
        """Go on to `sequence`; what is missing before it is covered, or lost."""
        if self.expected is None or sequence <= self.expected:
            return
        hole = self.expected, sequence - 1
        if self.is_covered(*hole):
            self.skipped = merge_ranges([*self.skipped, hole])
        elif sequence - 1 <= self.covered_messages:
            self.uncovered = merge_ranges([*self.uncovered, hole])
        else:
            self.lost = merge_ranges([*self.lost, hole])
        self.expected = sequence

    def cover(self, first: int, last: int) -> None:
        """A repair or a read model stands in for everything that is missing in a range. Where that
        is all of the run up to `last`, it stands in for the runs before it, too.
        """
        self.covered = join_ranges([*self.covered, (first, last)])[-GAPS_KEPT:]
        settled = [hole for hole in (*self.lost, *self.uncovered) if self.is_covered(*hole)]
        if settled:
            self.skipped = merge_ranges([*self.skipped, *settled])
            self.lost = [hole for hole in self.lost if not self.is_covered(*hole)]
            self.uncovered = [hole for hole in self.uncovered if not self.is_covered(*hole)]
        if self.start is None or first <= self.start:
            self.earlier = []

    def cover_messages(self, covered: int) -> None:
        """A snapshot carries the messages, and only those, of what is missing up to `covered`."""
        self.covered_messages = max(self.covered_messages, covered)
        settled = [hole for hole in self.lost if hole[1] <= covered]
        if settled:
            self.uncovered = merge_ranges([*self.uncovered, *settled])
            self.lost = [hole for hole in self.lost if hole[1] > covered]

    def cover_as(self, other: "Lane | None") -> None:
        """What stood in for missing facts of the same thread in another lane does so here."""
        if other is not None:
            self.covered = join_ranges([*self.covered, *other.covered])
            self.covered_messages = max(self.covered_messages, other.covered_messages)

    def skip_to(self, cursor: int) -> None:
        """A read model knows of everything up to `cursor`: go on behind it."""
        self.cover(BEFORE_ANY_SEQUENCE, cursor)
        if self.start is None:
            self.start = cursor + 1
        if self.expected is None:
            self.expected = cursor + 1
        self.pass_hole(cursor + 1)

    def misses(self, cursor: int) -> bool:
        """Whether facts up to `cursor` have not been taken."""
        if self.lost or self.uncovered or self.earlier:
            return True
        return self.expected is not None and self.expected <= cursor

    def pass_over(self, sequence: int) -> None:
        """What is missing before `sequence` was removed on purpose, and is no hole."""
        if self.expected is None:
            self.begin(sequence)
        elif sequence > self.expected:
            self.skipped = merge_ranges([*self.skipped, (self.expected, sequence - 1)])
            self.expected = sequence

    def has_missed(self, sequence: int) -> bool:
        """Whether a sequence behind the cursor was never taken."""
        if self.start is not None and sequence < self.start:
            return True
        return self.misses_between(sequence, sequence)

    def misses_between(self, first: int, last: int) -> bool:
        """Whether one of these sequences was passed over."""
        holes = (*self.lost, *self.uncovered, *self.skipped)
        return any(start <= last and first <= end for start, end in holes)

    def gaps(self) -> list[Gap]:
        """What is missing, lost or waited for."""
        holes = [*sorted([*self.earlier, *self.lost, *self.uncovered]), *self._holes()]
        return [
            Gap(from_sequence=first, to_sequence=last, thread_id=self.thread_id)
            for first, last in holes
        ]

    def _holes(self) -> Iterator[tuple[int, int]]:
        expected = self.expected
        for sequence in sorted(self.held):
            if expected is not None and sequence > expected:
                yield expected, sequence - 1
            expected = sequence + 1


def join_ranges(ranges: list[Sequences]) -> list[Sequences]:
    """Ranges in order; neighbours are one."""
    joined: list[Sequences] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined


def merge_ranges(ranges: list[Sequences]) -> list[Sequences]:
    """Ranges in order, as `join_ranges`; past a bound the oldest are taken together."""
    merged = join_ranges(ranges)
    while len(merged) > GAPS_KEPT:
        (first, _), (_, last), *rest = merged
        merged = [(first, last), *rest]
    return merged


_body_encoder: Final = msgspec.json.Encoder(order="deterministic")

Body = Fact | bytes
"""A remembered fact, or, after a restore, its digest."""


def digest_body(body: Body) -> bytes:
    """What two facts have in common exactly when they say the same."""
    if isinstance(body, bytes):
        return body
    return blake2b(_body_encoder.encode(body), digest_size=16).digest()


class RecentFacts:
    """The last facts taken."""

    __slots__ = ("bodies", "ids", "old_bodies", "old_ids")

    def __init__(self) -> None:
        self.ids: dict[str, None] = {}
        self.old_ids: dict[str, None] = {}
        self.bodies: dict[str, Body] = {}
        self.old_bodies: dict[str, Body] = {}

    def __contains__(self, fact_id: str) -> bool:
        return fact_id in self.ids or fact_id in self.old_ids

    def begin_generation(self) -> None:
        """As many facts are remembered as a generation holds: the one before it is forgotten."""
        self.old_bodies, self.bodies = self.bodies, {}
        if len(self.ids) >= REMEMBERED_IDS:
            self.old_ids, self.ids = self.ids, {}

    def contradicts(self, fact: Fact) -> bool:
        """Whether another body is remembered under the fact's id."""
        existing = self.bodies.get(fact.id) or self.old_bodies.get(fact.id)
        if existing is None or existing is fact:
            return False
        # Only bytes tell 1 from true and 1.0, and only they are there after a restore.
        return digest_body(existing) != digest_body(fact)

    def newest(self, count: int) -> list[Fact] | None:
        """The facts that were taken last, if that many are remembered whole."""
        if not count:
            return []
        bodies = [*self.old_bodies.values(), *self.bodies.values()][-count:]
        facts = [body for body in bodies if not isinstance(body, bytes)]
        return facts if len(facts) == count else None

    def remember_whole(self, facts: list[Fact]) -> None:
        """Facts that are remembered by their digests alone, as they are."""
        for fact in facts:
            for bodies in (self.old_bodies, self.bodies):
                if fact.id in bodies:
                    bodies[fact.id] = fact

    def replace_newest(self, count: int, facts: list[Fact]) -> None:
        """Other facts, or the same in another order, in place of those that were taken last."""
        bodies = [*self.old_bodies.items(), *self.bodies.items()]
        self.old_bodies = dict(bodies[: len(bodies) - count])
        self.bodies = {fact.id: fact for fact in facts}
        self.ids.update(dict.fromkeys(self.bodies))

    def dump(self) -> dict[str, Any]:
        """As plain data, for a checkpoint."""
        return {
            "ids": [list(self.old_ids), list(self.ids)],
            "bodies": [_digest_bodies(self.old_bodies), _digest_bodies(self.bodies)],
        }

    def load(self, ids: list[list[str]], bodies: list[dict[str, bytes]]) -> None:
        """Remember what a checkpoint carries."""
        self.old_ids, self.ids = (dict.fromkeys(names) for names in ids)
        self.old_bodies, self.bodies = (dict[str, Body](existing) for existing in bodies)


def _digest_bodies(bodies: dict[str, Body]) -> dict[str, bytes]:
    return {fact_id: digest_body(body) for fact_id, body in bodies.items()}


class RebuildPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint, or None for a projection of nothing, and how far it had come: the facts that
    were taken, and the sequence that each lane expected, by the key of the lane.
    """

    data: bytes | None
    event_count: int
    expected: dict[str, int]

    def is_before(self, lane: str, sequence: int) -> bool:
        """Whether a fact at this place would have been new at the point."""
        return self.expected.get(lane, sequence) <= sequence


def add_point(points: list[RebuildPoint], point: RebuildPoint) -> list[RebuildPoint]:
    """The points with another one; past a bound the oldest goes, but never the newest."""
    return [*points, point][-REBUILD_POINTS:]


def needs_point(points: list[RebuildPoint], event_count: int) -> bool:
    """Whether the newest point is so far back that another one is worth a copy of the state."""
    return not points or event_count - points[-1].event_count >= REBUILD_SPACING


def insert_fact(
    taken: list[Fact], fact: Fact, place: int, is_in_count: Callable[[Fact], bool]
) -> list[Fact]:
    """The facts that were taken with another one at its place in the order of its own count."""
    for index, other in enumerate(taken):
        if other.sequence is not None and other.sequence > place and is_in_count(other):
            return [*taken[:index], fact, *taken[index:]]
    return [*taken, fact]


def root_operations(before: dict[str, Any], after: dict[str, Any]) -> list[Operation]:
    """The operations that replace every root of a state that is not the same as before."""
    found: list[Operation] = []
    for name in sorted({*before, *after}):
        path = f"/{escape_key(name)}"
        if name not in after:
            found.append(Operation("remove", path))
        elif name not in before:
            found.append(Operation("add", path, after[name]))
        elif _encode(before[name]) != _encode(after[name]):
            found.append(Operation("replace", path, after[name]))
    return found


def _encode(value: object) -> bytes:
    """Bytes that differ exactly where JSON does; Python takes 1 and true for equal."""
    return msgspec.json.encode(value)
