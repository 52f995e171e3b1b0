"""`Runtime`: agents on one machine, their turns kept in one journal."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from weakref import WeakValueDictionary

import msgspec

from factwire.facts import Fact, InputPart, Person
from factwire.facts.json_values import object_at, text_at
from factwire.facts.resources import DecisionCard, GrantedRule, RuleMatch, StandingRule
from factwire.journal import Filter, Journal, JournalError
from factwire.journal.blobs import BlobStore
from factwire.projection import ProjectionState, ThreadReadModel, thread_read_model
from factwire.runtime.action_requests import expiry
from factwire.runtime.errors import (
    NothingToSteer,
    RuntimeClosing,
    SteerUnsupported,
    ThreadElsewhere,
    TooManyTurns,
    UnknownAgent,
    UnknownTurn,
)
from factwire.runtime.limits import CLOSE_SECONDS, IDLE_THREADS, RELOADS
from factwire.runtime.live_thread import LiveThread, RuntimeServices, TurnSlots, WhenBusy
from factwire.runtime.mint import FactScope, Mint, run_of
from factwire.runtime.policy import PolicyRule
from factwire.runtime.provider import (
    Decision,
    DeliveredSteer,
    Provider,
    ReadThread,
    StartTurn,
)
from factwire.runtime.recovery import (
    close_turn,
    find_abandoned_turn,
    find_other_owner,
    keep_queues_read,
    recover,
    settle_thread,
)
from factwire.runtime.runtime_identity import Identity
from factwire.runtime.standing_rules import (
    Grant,
    GrantDuration,
    RuleSubject,
    StandingRules,
    find_matches,
    folder_of,
    list_editable_files,
    require_proposed_rule,
)
from factwire.runtime.submissions import (
    SteerReceipt,
    SteerStatus,
    Submission,
    SubmissionReceipt,
    read_queued_submission,
    read_submission,
)
from factwire.runtime.thread_log import ThreadLog
from factwire.runtime.thread_states import ThreadStates
from factwire.runtime.turn_execution import Turn, TurnHost, build_cancellation
from factwire.runtime.turn_resources import TurnResources, TurnSettings, Workspaces


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, the workspace that it could be for, the folder in which alone it would hold, the
    files it names that the agent may edit, and the hash of what it was made from.
    """

    rule: PolicyRule
    workspace: Path
    folder: str
    editable: list[str]
    args_hash: str | None

    def to_resource(
        self, request_id: str, earlier: Sequence[tuple[RuleSubject, RuleMatch]]
    ) -> StandingRule:
        """The proposal as it is shown, with those of some earlier requests that it matches."""
        others = [pair for pair in earlier if pair[1].approval_id != request_id]
        return StandingRule(
            approval_id=request_id,
            args_hash=self.args_hash,
            rule=str(self.rule),
            workspace=str(self.workspace),
            folder=self.folder,
            editable=self.editable,
            matches=find_matches(self.rule, self.folder, self.workspace, others),
            searched=len(others),
        )


async def build_grant(
    runtime: "Runtime",
    thread: LiveThread,
    action_id: str,
    lasts: GrantDuration,
    expires_in: float | None,
) -> Grant:
    """The grant that allows what an action asks about from now on; raises `NoRule`."""
    proposal = await build_proposal(runtime, thread, action_id)
    clock = runtime.mint.clock()
    return runtime.standing.seal(
        Grant(
            rule_id=runtime.mint.ids("rule"),
            rule=str(proposal.rule),
            lasts=lasts,
            place=thread.thread_id if lasts == "thread" else str(proposal.workspace),
            folder=proposal.folder,
            thread_id=thread.thread_id,
            expires_at=None if expires_in is None else expiry(clock, expires_in),
        )
    )


async def build_proposal(runtime: "Runtime", thread: LiveThread, action_id: str) -> Proposal:
    """What a grant would hold; raises `NoRule`."""
    await thread.await_action(action_id)
    action = thread.approvals.require_action(action_id)
    submission = await read_submission(
        runtime.journal, runtime.blobs, thread.thread_id, action.turn_id or ""
    )
    named = None if submission is None else submission.workspace
    workspace = (runtime.workspace if named is None else Path(named)).resolve()
    rule = require_proposed_rule(runtime.resources.policy, action, workspace)
    folder = folder_of(action, workspace)
    writable = (str(workspace), *runtime.resources.sandbox.writable)
    return Proposal(
        rule=rule,
        workspace=workspace,
        folder=folder,
        editable=list_editable_files(rule, folder, writable),
        args_hash=action.args_hash,
    )


def build_grant_fact(
    runtime: "Runtime",
    thread: LiveThread,
    grant: Grant,
    *,
    by: Person | str,
    action_id: str | None = None,
) -> Fact:
    """The fact by which a grant holds."""
    scope = FactScope(session_id=thread.projection.state.session_id, thread_id=thread.thread_id)
    payload = {**grant.payload(), "decidedBy": msgspec.to_builtins(by)}
    return runtime.mint.fact(scope, "policy.changed", payload, action_id=action_id)


async def steer_running(
    thread: LiveThread, steer: DeliveredSteer, turn_id: str | None
) -> SteerReceipt:
    """Write something down for the turn that runs; what was given before is not given again."""
    async with thread.order:
        known = _find_receipt(thread, steer.steer_id)
        if known is not None:
            return known
        turn = _require_steerable(thread, turn_id)
        await thread.steers.add(turn.scope, steer)
        return build_steer_receipt(thread, turn.turn_id, steer.steer_id, "pending")


async def steer_with_queued(
    thread: LiveThread, queued_turn_id: str, by: Person | None = None
) -> SteerReceipt:
    """Say to the turn that runs what a queued turn was to be asked."""
    async with thread.order:
        turn = _require_steerable(thread, None)
        thread.queue.turn(queued_turn_id)
        submission = await thread.queue.submission(queued_turn_id)
        await thread.steers.turn_into_steer(turn.scope, submission, by)
        return build_steer_receipt(thread, turn.turn_id, queued_turn_id, "pending")


async def build_next_turn(
    runtime: "Runtime", thread: LiveThread, steer: DeliveredSteer
) -> Submission:
    """The turn that a steer becomes: of the agent that works on the thread, or did last."""
    last = thread.projection.state.runtime.latest_turn_id
    before = None if thread.turn is None else thread.turn.submission
    if before is None and last is not None:
        before = await read_submission(runtime.journal, runtime.blobs, thread.thread_id, last)
    if before is None:
        raise NothingToSteer(f"no turn has run on thread {thread.thread_id}; submit one")
    runtime.agent(before.agent)
    return msgspec.structs.replace(
        before,
        turn_id=steer.steer_id,
        prompt=steer.text,
        input=steer.input,
        retry_of=None,
        attempt=1,
        not_before=None,
        trace_id=None,
        created_at=None,
        by=steer.by,
    )


def build_steer_receipt(
    thread: LiveThread, turn_id: str, steer_id: str, status: SteerStatus
) -> SteerReceipt:
    return SteerReceipt(
        steer_id=steer_id, thread_id=thread.thread_id, turn_id=turn_id, status=status
    )


def _find_receipt(thread: LiveThread, steer_id: str) -> SteerReceipt | None:
    steer = thread.steers.find(steer_id)
    if steer is not None and steer.status in ("pending", "delivered"):
        status: SteerStatus = "pending" if steer.status == "pending" else "delivered"
        return build_steer_receipt(thread, steer.turn_id or "", steer_id, status)
    if not thread.knows(steer_id):
        return None
    waits = any(turn.queued_turn_id == steer_id for turn in thread.queue.turns)
    return build_steer_receipt(thread, steer_id, steer_id, "queued" if waits else "started")


def _require_steerable(thread: LiveThread, turn_id: str | None) -> Turn:
    turn = thread.turn
    stops = turn is not None and (turn.is_over or turn.stopping.is_set())
    if turn is None or stops or turn_id not in (None, turn.turn_id):
        wanted = (
            "no turn" if turn_id is None else f"turn {turn_id} is not running, and nothing else"
        )
        raise NothingToSteer(f"{wanted} can be steered on thread {thread.thread_id} now")
    if not turn.can_be_steered:
        raise SteerUnsupported(turn.submission.agent)
    return turn


class Runtime:
    """Runs turns; an async context manager that recovers on the way in.

    `workspace` is where a turn works that names no folder; one that does may name any below
    `workspaces`. On a journal that is shared, each runtime needs an `identity` of its own; where
    nobody else can write, `exclusive` says that what others claimed is free. `on_failure` is told
    of a thread whose `failure` keeps a turn from its end.
    """

    def __init__(
        self,
        journal: Journal,
        blobs: BlobStore,
        agents: Mapping[str, Provider],
        *,
        workspace: Path,
        workspaces: Iterable[str | Path] = (),
        resources: TurnResources | None = None,
        mint: Mint | None = None,
        settings: TurnSettings | None = None,
        identity: Identity | None = None,
        exclusive: bool = False,
        on_failure: Callable[[LiveThread], None] = lambda _: None,
    ) -> None:
        self.journal = journal
        self.blobs = blobs
        self.agents = agents
        self.workspace = workspace
        self.workspaces = Workspaces(workspaces)
        self.resources = resources or TurnResources(blobs=blobs)
        self.mint = mint or Mint("factwire")
        self.settings = settings or TurnSettings()
        self.identity = identity or Identity()
        self.exclusive = exclusive
        self.standing = StandingRules(journal, self.identity, self.mint.clock)
        self._threads: WeakValueDictionary[str, LiveThread] = WeakValueDictionary()
        """Every thread that anybody holds, so that there is never a second one of it."""
        self._recent: OrderedDict[str, LiveThread] = OrderedDict()
        """Threads on which something happens, and some of those that were used last."""
        self._opening = asyncio.Lock()
        self._states = ThreadStates(journal)
        self._starting: set[str] = set()
        self._reading: asyncio.Task[None] | None = None
        self._is_closing = False
        self._around = RuntimeServices(
            journal=journal,
            blobs=blobs,
            mint=self.mint,
            identity=self.identity,
            slots=TurnSlots(self.settings.active_turns),
            begin=self._begin,
            has_agents=bool(agents),
            retry=self.settings.retry_of,
            failed=on_failure,
        )

    async def __aenter__(self) -> Self:
        if self.resources.processes is not None:
            await self.resources.processes.reap()
        await recover(self)
        self._reading = asyncio.create_task(keep_queues_read(self))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close(0)

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Take nothing more, and let what runs come to its end for so long; then leave it where it
        is. What waits for a person, for its turn or for its time waits on for the next runtime,
        and whatever was accepted is durable.
        """
        self._is_closing = True
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
        threads = list(self._threads.values())
        for thread in threads:
            thread.begin_closing()
        working = [thread for thread in threads if thread.is_working]
        for thread in threads:
            if thread not in working:
                await thread.stop()
        if working and seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await asyncio.gather(*(thread.wait_idle_or_waiting() for thread in working))
        for thread in working:
            await thread.stop()

    @property
    def live(self) -> tuple[LiveThread, ...]:
        """The threads that are in memory: all on which something happens, and some others."""
        return tuple(self._threads.values())

    @property
    def active_turns(self) -> int:
        """Turns that run, are about to, or wait for room; not those that wait for a person."""
        busy = {each.thread_id for each in self.live if each.turn and not each.is_waiting}
        return len(busy | self._starting)

    def agent(self, name: str) -> Provider:
        """A registered agent."""
        if name not in self.agents:
            raise UnknownAgent(name, list(self.agents))
        return self.agents[name]

    async def thread(self, thread_id: str) -> LiveThread:
        """A thread, read from the journal the first time it is asked for."""
        async with self._opening:
            thread = self._threads.get(thread_id)
            if thread is None:
                projection = (await self._states.load(thread_id)).projection
                log = ThreadLog(self.journal, self.blobs, projection, thread_id, self.mint)
                thread = self._threads[thread_id] = LiveThread(log, self._around)
            self._keep(thread)
            return thread

    def _keep(self, thread: LiveThread) -> None:
        """Hold a thread, and let go of the one that has been idle for the longest time."""
        self._recent[thread.thread_id] = thread
        self._recent.move_to_end(thread.thread_id)
        if len(self._recent) > IDLE_THREADS:
            oldest = next(iter(self._recent))
            if self._recent[oldest].is_idle:
                del self._recent[oldest]
            else:
                self._recent.move_to_end(oldest)

    async def reload_thread(self, thread_id: str) -> bool:
        """Read a thread again of which facts were removed; False where its turn writes so fast that
        the two never meet.
        """
        for _ in range(RELOADS):
            async with self._opening:
                thread = self._threads.get(thread_id)
            if thread is None or thread.log.has_failed:
                return True
            await thread.log.settle()
            if thread.log.replace_projection((await self._states.load(thread_id)).projection):
                return True
        return False

    async def state(self, thread_id: str) -> ProjectionState:
        """What the facts of a thread come to now."""
        return (await self.thread(thread_id)).projection.state

    async def read_thread(self, thread_id: str, agent: str | None = None) -> ThreadReadModel:
        """A thread as an agent has it, without a name the agent of its latest turn; where the agent
        has none or is not registered, as the facts have it.
        """
        state = await self.state(thread_id)
        name = agent or state.runtime.agent_id or ""
        provider = self.agent(name) if agent is not None else self.agents.get(name)
        read = ReadThread(thread_id=thread_id, agent_id=name, state=state)
        model = None if provider is None else await provider.read_thread(read)
        return model or thread_read_model(state)

    async def submit(
        self,
        thread_id: str,
        agent: str,
        prompt: str,
        *,
        turn_id: str | None = None,
        input: tuple[InputPart, ...] = (),  # noqa: A002
        options: dict[str, Any] | None = None,
        session_id: str | None = None,
        project_id: str | None = None,
        workspace: str | Path | None = None,
        worktree: dict[str, str] | None = None,
        trace_id: str | None = None,
        by: Person | None = None,
        when_busy: WhenBusy = "queue",
        when_full: Literal["wait", "refuse"] = "wait",
    ) -> SubmissionReceipt:
        """Start a turn, or queue it behind the one that runs. `when_busy` is for a thread on which
        a turn runs, `when_full` for a runtime in which as many run as may.
        """
        self.agent(agent)
        submission = Submission(
            turn_id=turn_id or self.mint.ids("trn"),
            agent=agent,
            prompt=prompt,
            input=input,
            options=options or {},
            session_id=session_id or self.mint.ids("ses"),
            project_id=project_id,
            workspace=None if workspace is None else str(self.workspaces.resolve(workspace)),
            worktree=worktree,
            trace_id=trace_id,
            by=by,
        )
        thread = await self._writable(thread_id)
        return await self._take_in(thread, submission, when_busy, refuse=when_full == "refuse")

    async def retry(
        self,
        thread_id: str,
        turn_id: str,
        *,
        trace_id: str | None = None,
        by: Person | None = None,
    ) -> SubmissionReceipt:
        """Run a turn that ended once more, as a new one that names it; the old one is kept."""
        thread = await self._writable(thread_id)
        original = await read_submission(self.journal, self.blobs, thread_id, turn_id)
        if original is None and turn_id not in {row.queued_turn_id for row in thread.queue.turns}:
            # It ended before it began.
            original = await read_queued_submission(self.journal, self.blobs, thread_id, turn_id)
        if original is None:
            raise UnknownTurn(f"turn {turn_id} is not on thread {thread_id}")
        again = msgspec.structs.replace(
            original,
            turn_id=self.mint.ids("trn"),
            retry_of=turn_id,
            not_before=None,
            attempt=original.attempt + 1,
            trace_id=trace_id,
            created_at=None,
            by=by,
        )
        return await self._take_in(thread, again, "queue", refuse=False)

    async def steer(
        self,
        thread_id: str,
        prompt: str,
        *,
        turn_id: str | None = None,
        input: tuple[InputPart, ...] = (),  # noqa: A002
        steer_id: str | None = None,
        by: Person | None = None,
        when_unsupported: Literal["refuse", "queue"] = "refuse",
    ) -> SteerReceipt:
        """Say something to the turn that runs. Given twice under one id, it is said once. Where
        the turn cannot be steered, or none runs, `queue` makes it a turn of its own.
        """
        thread = await self._writable(thread_id)
        steer = DeliveredSteer(
            steer_id=steer_id or self.mint.ids("steer"), text=prompt, input=input, by=by
        )
        try:
            return await steer_running(thread, steer, turn_id)
        except (SteerUnsupported, NothingToSteer):
            if when_unsupported == "refuse":
                raise
        submission = await build_next_turn(self, thread, steer)
        became = await self._take_in(thread, submission, "queue", refuse=False)
        status = "started" if became.status == "started" else "queued"
        return build_steer_receipt(thread, steer.steer_id, steer.steer_id, status)

    async def steer_queued(
        self, thread_id: str, queued_turn_id: str, *, by: Person | None = None
    ) -> SteerReceipt:
        """Say to the turn that runs what a queued turn was to be asked, instead."""
        return await steer_with_queued(await self._writable(thread_id), queued_turn_id, by)

    async def promote(self, thread_id: str, turn_id: str, *, by: Person | None = None) -> None:
        """Let a waiting turn go first."""
        await (await self._writable(thread_id)).promote(turn_id, by)

    async def release(
        self, thread_id: str, turn_id: str | None = None, *, by: Person | None = None
    ) -> None:
        """Go on after a stop: let a turn that is held, or all of them, start in their order."""
        await (await self._writable(thread_id)).release(turn_id, by)

    async def remove(
        self,
        thread_id: str,
        turn_id: str,
        reason: str | None = None,
        *,
        by: Person | None = None,
    ) -> None:
        """Take a turn out of the queue; it never runs."""
        await (await self._writable(thread_id)).remove(turn_id, reason, by)

    async def cancel(
        self,
        thread_id: str,
        turn_id: str,
        reason: str = "requested",
        *,
        take_over: bool = False,
        by: Person | None = None,
    ) -> str:
        """Stop a turn that runs, close one that nobody runs any more, or take one out of the
        queue; of one that is tried again, the attempt that is under way or waits for its time. When
        a turn is stopped, what waits behind it is held until `release`. Returns how the turn ended:
        it may have been at its end already.
        """
        thread = await self.current(thread_id, take_over=take_over)
        turn_id = thread.latest_attempt(turn_id)
        if thread.turn is not None and thread.turn.turn_id == turn_id:
            try:
                await thread.request_stop(thread.turn, reason, by)
            except JournalError:
                # The agent was stopped all the same; the thread is free once its turn is over.
                await thread.wait_for(turn_id)
                raise
            return await thread.wait_for(turn_id)
        if find_abandoned_turn(thread) == turn_id:
            await close_turn(self, thread, turn_id, "turn.canceled", build_cancellation(reason, by))
        else:
            await thread.remove(turn_id, reason, by)
        return "canceled"

    async def decide(
        self,
        thread_id: str,
        action_id: str,
        decision: str,
        *,
        by: Person | str,
        args_hash: str,
        reason: str | None = None,
        response: object = None,
        always: GrantDuration | None = None,
        expires_in: float | None = None,
    ) -> Decision:
        """Answer an open request; `args_hash` is the hash on its card. With `always`, a yes holds
        for its pattern in its folder from now on, or for `expires_in` seconds.
        """
        thread = await self.current(thread_id)
        await thread.await_action(action_id)
        if action_id in thread.projection.state.actions:
            await self.read_card(thread_id, action_id)
        grant = (
            None
            if always is None
            else await build_grant(self, thread, action_id, always, expires_in)
        )
        granted = (
            ()
            if grant is None
            else (build_grant_fact(self, thread, grant, by=by, action_id=action_id),)
        )
        # The agent may ask the next thing as soon as it hears the yes; by then the grant holds.
        stop_watching = thread.log.watch(self.standing.note_change)
        try:
            made = await thread.approvals.decide(
                action_id,
                decision,
                by=by,
                reason=reason,
                args_hash=args_hash,
                response=response,
                granted=granted,
            )
        finally:
            stop_watching()
        if grant is not None and made.allowed and not self.standing.has_grant(grant):
            await thread.log.write(*granted)
            await self.standing.refresh()
        return made

    async def read_card(self, thread_id: str, action_id: str) -> DecisionCard:
        """Exactly what an open request asks; raises `UnknownAction`."""
        thread = await self.current(thread_id)
        await thread.await_action(action_id)
        card = thread.approvals.build_card(action_id)
        if card.shown is None and await self._restore_shown(thread, action_id):
            card = thread.approvals.build_card(action_id)
        return card

    async def _restore_shown(self, thread: LiveThread, action_id: str) -> bool:
        """Whether what a request of an earlier process shows was kept as a blob."""
        wanted = Filter(thread=thread.thread_id, classes=("action.required",))
        async for batch in self.journal.read(filter=wanted):
            for _, fact in batch.facts():
                ref = object_at(fact.payload.get("shownRef")) or {}
                name = text_at(ref, "ref") if fact.action_id == action_id else None
                if name is not None and await self.blobs.exists(name):
                    pieces = [piece async for piece in self.blobs.get(name)]
                    shown = b"".join(pieces).decode(errors="replace")
                    thread.approvals.restore_exact(action_id, shown)
                    return True
        return False

    async def list_standing_rules(self) -> list[GrantedRule]:
        """What was allowed always, and still holds."""
        await self.standing.refresh()
        return [grant.to_resource() for grant in self.standing.list_grants()]

    async def revoke_standing_rule(self, rule_id: str, *, by: Person | str) -> None:
        """Take back what was allowed always; raises `UnknownRule`."""
        await self.standing.refresh()
        grant = self.standing.revocation(rule_id)
        thread = await self.current(grant.thread_id)
        await thread.log.write(build_grant_fact(self, thread, grant, by=by))
        await self.standing.refresh()

    async def _take_in(
        self, thread: LiveThread, submission: Submission, when_busy: WhenBusy, *, refuse: bool
    ) -> SubmissionReceipt:
        thread_id = thread.thread_id
        idle = not thread.is_busy and not thread.knows(submission.turn_id)
        if refuse and idle and self.active_turns >= self.settings.active_turns:
            raise TooManyTurns(self.settings.active_turns)
        self._starting.add(thread_id)
        try:
            status = await thread.accept(submission, when_busy)
        finally:
            self._starting.discard(thread_id)
        return SubmissionReceipt(turn_id=submission.turn_id, thread_id=thread_id, status=status)

    async def _writable(self, thread_id: str) -> LiveThread:
        """A thread on which something new may begin."""
        if self._is_closing:
            raise RuntimeClosing
        return await self.current(thread_id)

    async def current(self, thread_id: str, *, take_over: bool = False) -> LiveThread:
        """A thread as the journal has it now; raises `ThreadElsewhere` for another runtime's."""
        thread = await self.thread(thread_id)
        if thread.is_busy:
            return thread
        failed = thread.log.has_failed
        known = await self.journal.thread(thread_id)
        # Somebody else has written on it since, or the journal took no more for a while.
        if failed or (known is not None and known.last_sequence > thread.log.last_sequence):
            async with self._opening:
                if self._threads.get(thread_id) is thread:
                    del self._threads[thread_id]
                    self._recent.pop(thread_id, None)
            thread = await self.thread(thread_id)
        other = None if take_over else await find_other_owner(self, thread)
        if other is not None:
            raise ThreadElsewhere(thread_id, other)
        if failed and not thread.is_busy:
            await settle_thread(self, thread, unrecorded=True)
        return thread

    async def _begin(self, thread: LiveThread, submission: Submission) -> Turn:
        """Write down that a turn was asked for, and make it ready to run."""
        provider = self.agent(submission.agent)
        scope = thread.scope(submission, run_id=run_of(submission.turn_id))
        turn = await self.turn_of(thread, provider, submission, run_id=scope.run_id)
        payload = {**submission.payload(), **self.identity.claim()}
        fact = self.mint.fact(scope, "turn.submitted", payload)
        asked_at = submission.created_at or fact.created_at
        turn.submission = msgspec.structs.replace(submission, created_at=asked_at)
        await thread.log.write(fact)
        return turn

    async def turn_of(
        self,
        thread: LiveThread,
        provider: Provider,
        submission: Submission,
        *,
        run_id: str | None,
        resumed: bool = False,
    ) -> Turn:
        """A turn that is written down, ready to run."""
        await self.standing.refresh()
        thread.approvals.trace(submission.turn_id, submission.trace_id)
        named = submission.workspace
        host = TurnHost(
            thread.log,
            thread.approvals,
            self.mint,
            thread.scope(submission, run_id),
            workspace=self.workspace if named is None else self.workspaces.resolve(named),
            resources=self.resources,
            steers=thread.steers,
            standing=self.standing,
        )
        start = StartTurn(
            turn_id=submission.turn_id,
            thread_id=thread.thread_id,
            prompt=submission.prompt,
            host=host,
            input=submission.input,
            options=submission.options,
            history=thread.projection.state,
            resumed=resumed,
        )
        return Turn(
            thread.log,
            thread.approvals,
            provider,
            start,
            submission=submission,
            finish=thread.finish,
            claim=self.identity.claim(),
            seconds=self.settings.turn_seconds,
            interrupt_seconds=self.settings.interrupt_seconds,
        )
