"""Retention on a running Edge: whole runs that ended long ago, and deltas of complete texts.

What goes is the beginning of a thread, up to the end of a run. First a fact beside the thread says
so, with the thread's row as it is listed; only then are the facts removed. Whoever stops between
the two finds the fact at the next start and finishes, so that a removal is whole or not at all, and
nobody wonders where facts went. Then everything that was made of them is made anew: lists, states
and streams. A thread on which something is open is left alone.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from factwire.edge.edge_context import EdgeContext
from factwire.edge.edge_metrics import UNFINISHED
from factwire.edge.limits import RETENTION_BATCH_FACTS, RETENTION_HELD_NAMES, RETENTION_STEP_FACTS
from factwire.facts import Fact, Person
from factwire.facts.classes.class_tables import TURN_TERMINALS
from factwire.facts.open_work import TURN_OPENERS, OpenWork, RecentIds
from factwire.facts.resources import (
    HistoryRemoval,
    RetentionRules,
    RetentionRun,
    RetentionState,
    RetentionTrigger,
    Thread,
)
from factwire.journal import Filter, JournalError, RetentionPolicy
from factwire.journal.blobs.blob_store import find_referenced_blobs, run_disk_work
from factwire.journal.filter import BESIDE_THREAD
from factwire.journal.retention import CompactionPolicy, RemovalRehearsal, RemovalTotals
from factwire.projection import Projection
from factwire.runtime.configuration import RetentionSettings
from factwire.runtime.thread_states import ThreadStates
from factwire.serving.asgi import Problem, new_trace_id
from factwire.serving.logs import logger
from factwire.serving.streams.live_projection import LiveProjections

KEPT_CLASSES: Final = frozenset({"policy.changed", "thread.deleted", "evidence.exported"})
"""Facts of a thread that outlive its history: standing rules, that it was deleted, its packs."""

SCHEDULE: Final = Person(name="Factwire", via="retention")
"""Who removes what a setting says."""

_TURN_CLASSES: Final = (*sorted(TURN_OPENERS), *sorted(TURN_TERMINALS))
_log: Final = logger("factwire.edge")


class EndedTurn(msgspec.Struct, frozen=True, gc=False):
    """The end of a turn, and how many facts it has, as far as its sequence tells."""

    thread_id: str
    turn_id: str
    seq: int
    ended_at: str
    facts: int


class ThreadCut(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a thread that goes, up to the seq `through`."""

    thread_id: str
    through: int
    before: str
    facts: int
    runs: int
    total_cost_usd: float


class EdgeRetention:
    """Carries out rules, when asked or by the clock; one run at a time."""

    def __init__(
        self,
        edge: EdgeContext,
        projections: LiveProjections,
        settings: RetentionSettings,
    ) -> None:
        self.states = ThreadStates(edge.journal)
        self._edge = edge
        self._projections = projections
        self._settings = settings
        self._one = asyncio.Lock()

    @property
    def rules(self) -> RetentionRules | None:
        """What the settings remove; None where they remove nothing."""
        wanted = self._settings
        rules = RetentionRules(
            keep_days=wanted.keep_days, keep_facts=wanted.keep_facts, compact=wanted.compact
        )
        return None if rules == RetentionRules() else rules

    def state(self) -> RetentionState:
        """What is set, what was done and what comes next."""
        done, records = self._edge.retention, self._edge.records
        return RetentionState(
            rules=self.rules,
            every_seconds=None if self.rules is None else self._settings.every_seconds,
            is_running=done.is_running,
            last=done.last or records.retention,
            next_at=done.next_at,
            error=done.error,
            pending_threads=len(records.pending_removals()),
        )

    @asynccontextmanager
    async def run_scheduled(self) -> AsyncGenerator[None]:
        """Finish what a former process began, then carry out the settings again and again for as
        long as the block lasts.
        """
        await self._finish_removals()
        task = asyncio.create_task(self._repeat(), name="factwire-retention")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def run(
        self,
        rules: RetentionRules | None,
        *,
        by: Person,
        trigger: RetentionTrigger = "request",
        dry_run: bool = False,
    ) -> RetentionRun:
        """Remove what rules say, those of the settings without any; raises `Problem`."""
        wanted = rules or self.rules
        if wanted is None or wanted == RetentionRules():
            raise Problem(
                400,
                "retention_not_set",
                "no rule says what to remove; send keepDays, keepFacts or compact, or set one of "
                "retention.keep_days, retention.keep_facts and retention.compact",
            )
        started_at = self._edge.mint.clock()
        if self._one.locked():
            raise Problem(409, "retention_running", "retention is already running; try again later")
        async with self._one:
            self._edge.retention.is_running = True
            try:
                ended = partial(
                    RetentionRun, started_at=started_at, trigger=trigger, by=by, rules=wanted
                )
                if dry_run:
                    return await self._rehearse(wanted, ended)
                return await self._carry_out(wanted, ended, by)
            finally:
                self._edge.retention.is_running = False

    async def _finish_removals(self) -> None:
        """Remove what a former process said that it would remove, and did not."""
        removals = self._edge.records.pending_removals()
        if removals:
            async with self._one:
                totals, pending = await self._remove(removals)
                _log.info("retention_finished", facts=totals.removed, pending=len(pending))
                await self._write_completed(None, pending)

    async def _repeat(self) -> None:
        done, every = self._edge.retention, timedelta(seconds=self._settings.every_seconds)
        while self.rules is not None:
            try:
                await self.run(None, by=SCHEDULE, trigger="schedule")
            except Problem as problem:
                _log.info("retention_skipped", code=problem.code)
            except JournalError as error:
                done.error = f"{error.code}: {error}"
                done.failures += 1
                _log.warning("retention_failed", code=error.code, detail=str(error))
            due = _parse_time(self._edge.mint.clock())
            done.next_at = None if due is None else _format_time(due + every)
            await asyncio.sleep(self._settings.every_seconds)

    async def _rehearse(
        self, rules: RetentionRules, ended: "partial[RetentionRun]"
    ) -> RetentionRun:
        cuts, held = await self._plan(rules)
        rehearsal = RemovalRehearsal(self._edge.journal, upcoming=len(cuts))
        removed = await rehearsal.retain(
            _build_policy({cut.thread_id: cut.through for cut in cuts})
        )
        compacted = RemovalTotals()
        if rules.compact:
            compacted = await rehearsal.compact(CompactionPolicy())
        return ended(
            dry_run=True,
            finished_at=self._edge.mint.clock(),
            threads=len(cuts),
            runs=sum(cut.runs for cut in cuts),
            facts=removed.removed,
            deltas=compacted.removed,
            freed_bytes=removed.freed + compacted.freed,
            held_by=_shorten_names((*held, *removed.held_by, *compacted.held_by)),
        )

    async def _carry_out(
        self, rules: RetentionRules, ended: "partial[RetentionRun]", by: Person
    ) -> RetentionRun:
        cuts, held = await self._plan(rules)
        removed, pending = await self._remove(self._edge.records.pending_removals())
        for step in _group_cuts(cuts):
            await self._announce(step, by)
            totals, left = await self._remove({cut.thread_id: cut.through for cut in step})
            removed.add(totals.removed, totals.freed, totals.held_by)
            pending += left
        deltas = RemovalTotals()
        if rules.compact:
            done = await self._edge.journal.compact()
            deltas.add(done.removed, done.freed, done.held_by)
        blobs = 0
        if removed.removed or deltas.removed:
            referenced = partial(find_referenced_blobs, self._edge.journal)
            blobs = len((await self._edge.blobs.collect_garbage(referenced)).removed)
        run = ended(
            finished_at=self._edge.mint.clock(),
            threads=len(cuts),
            runs=sum(cut.runs for cut in cuts),
            facts=removed.removed,
            deltas=deltas.removed,
            freed_bytes=removed.freed + deltas.freed,
            blobs=blobs,
            held_by=_shorten_names((*held, *removed.held_by, *deltas.held_by)),
        )
        self._edge.retention.add(run)
        if run.facts or run.deltas or cuts:
            await self._write_completed(run, pending)
        return run

    async def _announce(self, cuts: list[ThreadCut], by: Person) -> None:
        """Write down what goes, before any of it does."""
        waiting = iter(cuts)
        while batch := list(islice(waiting, RETENTION_BATCH_FACTS)):
            await self._edge.append(*(self._build_announcement(cut, by) for cut in batch))

    def _build_announcement(self, cut: ThreadCut, by: Person) -> Fact:
        row = self._edge.records.threads.get(cut.thread_id)
        payload: dict[str, Any] = {
            "aboutThread": cut.thread_id,
            "through": cut.through,
            "removal": msgspec.to_builtins(self._build_removal(cut, row, by)),
        }
        if row is not None and row.private:
            # What names a private thread stays with it.
            payload[BESIDE_THREAD] = cut.thread_id
        if row is not None:
            payload["thread"] = msgspec.to_builtins(self._describe_thread(row, cut.through))
        return self._edge.build_fact("history.removed", payload, new_trace_id())

    def _build_removal(self, cut: ThreadCut, row: Thread | None, by: Person) -> HistoryRemoval:
        """What the row of a thread says of all that was ever removed of it."""
        earlier = None if row is None else row.history_removed
        cost = cut.total_cost_usd + ((earlier and earlier.total_cost_usd) or 0.0)
        return HistoryRemoval(
            at=self._edge.mint.clock(),
            before=cut.before,
            facts=cut.facts + (0 if earlier is None else earlier.facts),
            runs=cut.runs + (0 if earlier is None else earlier.runs),
            by=by,
            total_cost_usd=cost or None,
        )

    def _describe_thread(self, row: Thread, through: int) -> Thread:
        """The row as it is listed, without a link to a run that goes."""
        latest = self._edge.records.runs.get(row.latest_run_id or "")
        kept = latest is not None and latest.seq > through
        latest_id = row.latest_run_id if kept else None
        return msgspec.structs.replace(row, latest_run_id=latest_id, history_removed=None)

    async def _remove(self, threads: dict[str, int]) -> tuple[RemovalTotals, list[str]]:
        """Remove the beginnings of threads, and everything that was made of them; also those of
        which something had to stay.
        """
        edge, totals = self._edge, RemovalTotals()
        if not threads:
            return totals, []
        removal = await edge.journal.retain(_build_policy(threads))
        totals.add(removal.removed, removal.freed, removal.held_by)
        pending = list(threads) if removal.held_by else []
        for thread_id in threads:
            await edge.intakes.remove(thread_id)
            await self.states.forget(thread_id)
            if not await edge.runtime.reload_thread(thread_id):
                pending.append(thread_id)
        await edge.record_store.rebuild(edge.journal, set(threads))
        for thread_id in threads:
            await self._projections.forget(thread_id)
        return totals, sorted(set(pending))

    async def _write_completed(self, run: RetentionRun | None, pending: list[str]) -> None:
        payload: dict[str, Any] = {"pending": pending}
        if run is not None:
            payload["run"] = msgspec.to_builtins(run)
        await self._edge.append(
            self._edge.build_fact("retention.completed", payload, new_trace_id())
        )

    async def _plan(self, rules: RetentionRules) -> tuple[list[ThreadCut], list[str]]:
        """What rules remove now, oldest first, and what keeps more from being removed."""
        edge = self._edge
        turns = await self._find_ended_turns()
        facts = (await edge.journal.stats()).facts
        held = await self._find_holds({turn.thread_id for turn in turns})
        free = [turn for turn in turns if turn.thread_id not in held]
        old = list(_select_by_age(turns, rules.keep_days, edge.mint.clock()))
        many = list(_select_by_count(free, rules.keep_facts, facts))
        last = {turn.thread_id: turn for turn in sorted({*old, *many}, key=lambda turn: turn.seq)}
        cuts = [await self._measure(last[thread_id]) for thread_id in last if thread_id not in held]
        # Where as many facts as are wanted cannot go, whatever is open stands in the way.
        is_short = rules.keep_facts is not None and len(many) == len(free)
        blocked = held if is_short else {turn.thread_id for turn in old} & held.keys()
        return [cut for cut in cuts if cut.facts], [held[thread_id] for thread_id in blocked]

    async def _find_ended_turns(self) -> list[EndedTurn]:
        """Every turn that ended, in the order of the ends."""
        found: list[EndedTurn] = []
        begun: dict[str, int] = {}
        threads: dict[str, OpenWork] = {}
        async for batch in self._edge.journal.read(filter=Filter(classes=_TURN_CLASSES)):
            for seq, fact in batch.facts():
                if fact.thread_id is None or fact.turn_id is None:
                    continue
                work = threads.setdefault(fact.thread_id, OpenWork(RecentIds()))
                if not work.follow_turn(fact):
                    continue
                sequence = fact.sequence or 0
                if fact.event_class in TURN_OPENERS:
                    begun.setdefault(fact.turn_id, sequence)
                    continue
                facts = max(1, sequence - begun.pop(fact.turn_id, sequence) + 1)
                found.append(EndedTurn(fact.thread_id, fact.turn_id, seq, fact.created_at, facts))
            await asyncio.sleep(0)
        return found

    async def _find_holds(self, threads: set[str]) -> dict[str, str]:
        """Threads of which nothing goes now, and why."""
        records, trees = self._edge.records, dict[str, list[str]]()
        rows = ((thread_id, self._describe_hold(thread_id)) for thread_id in threads)
        held = {thread_id: reason for thread_id, reason in rows if reason is not None}
        for thread_id in threads:
            for run in records.runs.newest(thread_id=thread_id):
                if run.status in UNFINISHED:
                    held[thread_id] = f"run {run.run_id} in thread {thread_id}"
                elif run.worktree is not None:
                    trees.setdefault(thread_id, []).append(run.worktree.path)
        for preview in records.previews.newest(status="ready"):
            if preview.thread_id in threads:
                held[preview.thread_id] = f"a preview in thread {preview.thread_id}"
        for thread_id in await run_disk_work(_find_existing, trees):
            held[thread_id] = f"a worktree in thread {thread_id}"
        return held

    def _describe_hold(self, thread_id: str) -> str | None:
        """What the row of a thread says against removing anything of it."""
        edge, row = self._edge, self._edge.records.threads.get(thread_id)
        if row is None:
            is_deleted = edge.records.is_deleted(thread_id)
            return None if is_deleted else f"thread {thread_id}, which is not listed"
        if not edge.runtime.exclusive and row.runtime_id != edge.mint.runtime_id:
            return f"thread {thread_id}, which belongs to another runtime"
        return f"an approval in thread {thread_id}" if row.open_approvals else None

    async def _measure(self, turn: EndedTurn) -> ThreadCut:
        """What goes with a turn: all before it, and what was noted about it after its end. The last
        fact of a thread stays, because the next one follows its sequence.
        """
        projection = Projection(turn.thread_id)
        through = facts = runs = 0
        work = OpenWork(RecentIds())
        last: tuple[int, Fact] | None = None
        async for seq, fact in self._read_thread(turn.thread_id):
            if last is not None:
                through = last[0]
                facts += last[1].event_class not in KEPT_CLASSES
                runs += work.follow_turn(last[1]) and last[1].event_class in TURN_TERMINALS
                projection.replay(last[1])
            last = seq, fact
            if seq > turn.seq and not _belongs_to(fact, turn):
                break
        return ThreadCut(
            thread_id=turn.thread_id,
            through=through,
            before=turn.ended_at,
            facts=facts,
            runs=runs,
            total_cost_usd=projection.state.metrics.usage.total_cost_usd,
        )

    async def _read_thread(self, thread_id: str) -> AsyncGenerator[tuple[int, Fact]]:
        async for batch in self._edge.journal.read(filter=Filter(thread=thread_id)):
            for placed in batch.facts():
                yield placed
            await asyncio.sleep(0)


def _belongs_to(fact: Fact, turn: EndedTurn) -> bool:
    return fact.turn_id == turn.turn_id and fact.event_class != "turn.submitted"


def _build_policy(threads: dict[str, int]) -> RetentionPolicy:
    return RetentionPolicy(threads=threads, keep_classes=KEPT_CLASSES)


def _select_by_age(
    turns: list[EndedTurn], keep_days: float | None, now: str
) -> Iterator[EndedTurn]:
    """Turns that ended too long ago; in each thread none that follows one that did not."""
    time = _parse_time(now)
    if keep_days is None or time is None:
        return
    limit, kept = time - timedelta(days=keep_days), set[str]()
    for turn in turns:
        ended = _parse_time(turn.ended_at)
        if ended is None or ended >= limit:
            kept.add(turn.thread_id)
        elif turn.thread_id not in kept:
            yield turn


def _select_by_count(
    turns: list[EndedTurn], keep_facts: int | None, facts: int
) -> Iterator[EndedTurn]:
    """The oldest turns, as many as there are too many facts for."""
    for turn in turns:
        if keep_facts is None or facts <= keep_facts:
            return
        facts -= turn.facts
        yield turn


def _group_cuts(cuts: Iterable[ThreadCut]) -> Iterator[list[ThreadCut]]:
    """Cuts that are carried out at once, so that no writer waits long."""
    step: list[ThreadCut] = []
    for cut in cuts:
        step.append(cut)
        if sum(each.facts for each in step) >= RETENTION_STEP_FACTS:
            yield step
            step = []
    if step:
        yield step


def _shorten_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))[:RETENTION_HELD_NAMES]


def _find_existing(trees: dict[str, list[str]]) -> list[str]:
    """The threads that have a worktree still: it belongs to a run that must stay listed."""
    return [thread for thread, paths in trees.items() if any(Path(path).exists() for path in paths)]


def _parse_time(text: str) -> datetime | None:
    """A time with its zone; None for what is none, as facts of others may have."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def _format_time(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
