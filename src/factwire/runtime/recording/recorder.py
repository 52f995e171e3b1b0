"""`Recorder`: the facts of anyone's own loop, without a provider; turns, and trials of a benchmark.

They go to a journal, or to a running Edge: facts that come while a request is under way make up
the next one, a request that was not answered is sent again, and a repeat changes nothing there.
What is asked of a person is then decided at the Edge, and the decision is fetched from it.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, Unpack

from factwire.facts import Fact, Ref, RefKind
from factwire.facts.refs import content_ref
from factwire.facts.resources import Approval
from factwire.journal import AppendResult, Cursor, Journal, open_journal
from factwire.journal.blobs import BlobStore, FileBlobs, MemoryBlobs
from factwire.projection import Changes, Projection, ProjectionState
from factwire.projection.actions import Action
from factwire.runtime.action_requests import ActionRequests
from factwire.runtime.configuration.resolution import load_redaction
from factwire.runtime.errors import GateRefused, TurnAlreadyActive, TurnFailed
from factwire.runtime.limits import DECISION_WAIT_SECONDS, EDGE_OUTAGE_SECONDS
from factwire.runtime.mint import FactScope, Mint
from factwire.runtime.provider import Decision
from factwire.runtime.recording.turn_recorder import RequestOptions, TurnRecorder
from factwire.runtime.thread_log import ContentStore, FactStore, ThreadLog
from factwire.runtime.thread_states import ThreadStates
from factwire.runtime.turn_end import close_open_work, failure_payload

if TYPE_CHECKING:
    from factwire.client import EdgeProblem


class TrialOptions(TypedDict, total=False):
    """What is tried on what, with which settings; `trial_id` is made up if not given."""

    dataset: str
    configuration: dict[str, Any]
    trial_id: str


class TrialRecorder:
    """Records one trial."""

    def __init__(
        self, log: ThreadLog, blobs: ContentStore, mint: Mint, scope: FactScope, trial_id: str
    ) -> None:
        self.trial_id = trial_id
        self._log = log
        self._blobs = blobs
        self._mint = mint
        self._scope = scope
        self._refs: list[str] = []
        self._ended = False

    def reward(self, value: float, name: str | None = None) -> None:
        """What the trial earned; a further reward goes by a name of its own."""
        named = {} if name is None else {"name": name}
        self._put("benchmark.reward.recorded", {"reward": value, **named})

    async def trajectory(self, content: bytes | str) -> str:
        """What was done, kept as a blob; its ref."""
        data = content.encode() if isinstance(content, str) else content
        ref = (await self._blobs.put(data, kind="trace")).ref
        self.refers_to(ref)
        return ref

    def refers_to(self, ref: str) -> None:
        """What was done is kept elsewhere, under this ref."""
        self._refs.append(ref)

    def fail(self, category: str) -> None:
        """It could not be carried out; leaving the block without this says that it was."""
        if not self._ended:
            self._end("benchmark.trial.failed", {"failureCategory": category})

    def start(self, payload: dict[str, Any]) -> None:
        self._put("benchmark.trial.started", payload)

    def close(self) -> None:
        if not self._ended:
            self._end("benchmark.trial.completed", {})

    def _end(self, event_class: str, payload: dict[str, Any]) -> None:
        self._ended = True
        refs: dict[str, Any] = {}
        if self._refs:
            refs = {"trajectoryRef": self._refs[0], "trajectoryRefs": self._refs}
        self._put(event_class, {**payload, **refs})

    def _put(self, event_class: str, fields: dict[str, Any]) -> Fact:
        payload = {"trialId": self.trial_id, **fields}
        made = self._mint.fact(self._scope, event_class, payload)
        self._log.put(made)
        return made


@asynccontextmanager
async def record_trial(
    log: ThreadLog,
    blobs: ContentStore,
    mint: Mint,
    scope: FactScope,
    task: str,
    **fields: Unpack[TrialOptions],
) -> AsyncGenerator[TrialRecorder]:
    """A trial: it completes when the block does, and fails with a category when that raises."""
    trial = TrialRecorder(log, blobs, mint, scope, fields.get("trial_id") or mint.ids("trial"))
    payload = {"task": task, "dataset": fields.get("dataset")}
    known = {name: value for name, value in payload.items() if value is not None}
    trial.start({**known, "configuration": fields.get("configuration") or {}})
    try:
        yield trial
    except BaseException as error:
        trial.fail(_category(error))
        raise
    else:
        trial.close()
    finally:
        await log.flush()


def record_comparison(
    log: ThreadLog, mint: Mint, scope: FactScope, title: str, fields: dict[str, Any]
) -> str:
    """That two benchmarks were compared and what came of it, as evidence; its id."""
    key = mint.ids("evd")
    payload = {"kind": "benchmark", "title": title, **fields}
    log.put(mint.fact(scope, "benchmark.comparison.completed", payload, evidence_id=key))
    return key


def _category(error: BaseException) -> str:
    if isinstance(error, TurnFailed):
        return error.code
    return "cancelled" if isinstance(error, asyncio.CancelledError) else "exception"


OnAsk = Callable[[Action], Awaitable[str]]
"""Answers a request where nobody else is there to: `approve`, `deny`, …"""


EDGE_SCHEMES: Final = ("http://", "https://")
_FACTS_SENT: Final = 1_000
"""Facts of one request to an Edge; a fast loop makes several of what waits."""


class RecordingEdge:
    """A running Edge, as the place that a recorder writes to. Needs `factwire[client]`."""

    def __init__(self, url: str, token: str | None) -> None:
        # Who records to a journal need not have it installed.
        from factwire.client import AsyncClient, EdgeProblem  # noqa: PLC0415 - as said

        self._problem = EdgeProblem
        self._client = AsyncClient(url, token=token, retry_seconds=EDGE_OUTAGE_SECONDS)

    async def load(self, thread_id: str) -> Projection:
        """What the Edge has of a thread."""
        projection = Projection(thread_id)
        async for placed in self._client.past_facts(thread_id=thread_id):
            projection.replay(placed.fact)
        return projection

    async def append(self, batch: Sequence[Fact], /) -> AppendResult:
        """Send facts; raises `GateRefused` with the Edge's own code for those that it refuses."""
        seqs: tuple[int, ...] = ()
        sequences: tuple[int | None, ...] = ()
        cursor = Cursor("", 0)
        for start in range(0, len(batch), _FACTS_SENT):
            try:
                accepted = await self._client.post_facts(batch[start : start + _FACTS_SENT])
            except self._problem as problem:
                raise _to_refusal(problem) from problem
            seqs, sequences = (*seqs, *accepted.seqs), (*sequences, *accepted.sequences)
            cursor = Cursor.parse(accepted.cursor)
        return AppendResult(cursor.epoch, seqs, sequences, (False,) * len(seqs))

    async def save_snapshot(self, thread_id: str, cursor: Cursor, data: bytes, /) -> None:
        """Nothing: an Edge has the states of its threads itself."""

    async def put(self, content: bytes, /, *, kind: RefKind) -> Ref:
        """Upload content; the same bytes are one blob, under a ref of any kind."""
        stored = await self._client.upload(content)
        return Ref(ref=content_ref(kind, content), kind=kind, bytes=stored.bytes)

    async def wait_for_decision(self, action_id: str) -> Approval:
        """The approval of a request once it is decided; raises `ClientError`."""
        while True:
            row = await self._client.approval(action_id, wait=DECISION_WAIT_SECONDS)
            if row.status != "pending":
                return row

    async def close(self) -> None:
        await self._client.aclose()


def _to_refusal(problem: "EdgeProblem") -> GateRefused:
    issues: list[dict[str, str]] = problem.members.get("issues") or []
    if not issues:
        return GateRefused(problem.code, f"the Edge refused the facts: {problem.detail}")
    first = issues[0]
    detail = f"{first['path']}: {first['message']}"
    return GateRefused(first.get("code", problem.code), f"the Edge refused the facts: {detail}")


class Recorder:
    """Records turns of one thread; an async context manager. `journal` is a journal, the URL of
    one, or the address of a running Edge, with the `token` for it. What the configuration of the
    current folder names as secret is hidden; one that cannot be used is a `ConfigurationError`.
    """

    def __init__(
        self,
        journal: str | Journal,
        *,
        token: str | None = None,
        thread_id: str | None = None,
        session_id: str | None = None,
        agent_id: str = "recorder",
        blobs: BlobStore | None = None,
        mint: Mint | None = None,
        on_ask: OnAsk | None = None,
    ) -> None:
        self.mint = mint or Mint(agent_id)
        self.thread_id = thread_id or self.mint.ids("thr")
        self._journal = journal
        self._session_id = session_id
        self._agent_id = agent_id
        self._edge: RecordingEdge | None = None
        if isinstance(journal, str) and journal.startswith(EDGE_SCHEMES):
            self._edge = RecordingEdge(journal, token)
        self._blobs: ContentStore = blobs or self._edge or _blobs_beside(journal)
        self._on_ask = on_ask
        self._opened = AsyncExitStack()
        self._log: ThreadLog | None = None
        self._approvals: ActionRequests | None = None
        self._turn: TurnRecorder | None = None
        self._fetching: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        load_redaction()
        try:
            store, projection = await self._open_store()
        except BaseException:
            await self._opened.aclose()
            raise
        self._log = ThreadLog(store, self._blobs, projection, self.thread_id, self.mint)
        self._approvals = ActionRequests(self._log, self.mint)
        self._session_id = projection.state.session_id or self._session_id or self.mint.ids("ses")
        if self._on_ask is not None:
            self._log.watch(self._answer_action)
        if self._edge is not None:
            self._log.watch(self._follow_request)
            for action in projection.state.actions.values():
                if action.status == "pending":
                    self._fetch_later(action.action_id, self._edge)
        return self

    async def _open_store(self) -> tuple[FactStore, Projection]:
        if self._edge is not None:
            self._opened.push_async_callback(self._edge.close)
            return self._edge, await self._edge.load(self.thread_id)
        journal = self._journal
        if isinstance(journal, str):
            journal = await self._opened.enter_async_context(open_journal(journal))
        return journal, (await ThreadStates(journal).load(self.thread_id)).projection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._log is not None:
                await self._log.flush()
        finally:
            fetching = tuple(self._fetching.values())
            for task in fetching:
                task.cancel()
            await asyncio.gather(*fetching, return_exceptions=True)
            await self._opened.aclose()

    async def flush(self) -> None:
        """Wait until everything recorded so far is durable; raises what kept it from being so."""
        await self._open_log().flush()

    @property
    def state(self) -> ProjectionState:
        """What has been recorded comes to."""
        return self._open_log().projection.state

    def watch(self, watcher: Callable[[Fact, Changes], None]) -> Callable[[], None]:
        """Have every fact told once it is durable; returns how to stop it."""
        return self._open_log().watch(watcher)

    @asynccontextmanager
    async def turn(
        self, prompt: str, *, turn_id: str | None = None
    ) -> AsyncGenerator[TurnRecorder]:
        """A turn: it completes when the block does, and fails with a category when that raises."""
        log, approvals = self._open_log(), self._open_approvals()
        active = log.gates.active_turn
        if active is not None:
            raise TurnAlreadyActive(self.thread_id, active)
        scope = FactScope(
            session_id=self._session_id,
            thread_id=self.thread_id,
            turn_id=turn_id or self.mint.ids("trn"),
            run_id=self.mint.ids("run"),
            agent_id=self._agent_id,
        )
        self._turn = turn = TurnRecorder(log, self._blobs, approvals, self.mint, scope)
        turn.fact("turn.submitted", {"prompt": prompt})
        turn.fact("turn.started")
        try:
            yield turn
        except BaseException as error:
            await self._close(turn, "turn.failed", _failure(error))
            raise
        else:
            await self._close(turn, "turn.completed", {})
        finally:
            self._turn = None

    def trial(
        self, task: str, **fields: Unpack[TrialOptions]
    ) -> AbstractAsyncContextManager[TrialRecorder]:
        """A trial of a benchmark, by its task, `dataset` and `configuration`."""
        log, scope = self._open_log(), self._scope_beside_turns()
        return record_trial(log, self._blobs, self.mint, scope, task, **fields)

    def comparison(self, title: str, **fields: object) -> str:
        """That two benchmarks were compared and what came of it, as evidence; its id."""
        scope = self._scope_beside_turns()
        return record_comparison(self._open_log(), self.mint, scope, title, fields)

    def _scope_beside_turns(self) -> FactScope:
        return FactScope(
            session_id=self._session_id, thread_id=self.thread_id, agent_id=self._agent_id
        )

    async def ask(self, prompt: str, **request: Unpack[RequestOptions]) -> Decision:
        """Ask a person within the turn that is under way, as `TurnRecorder.ask` does."""
        if self._turn is None:
            raise RuntimeError("ask within a turn: async with recorder.turn(...) as turn")
        return await self._turn.ask(prompt, **request)

    async def approval(self, action_id: str) -> Decision:
        """The decision on a request that was recorded before, by an earlier process too."""
        await self.flush()
        approvals = self._open_approvals()
        is_open = approvals.require_action(action_id).status == "pending"
        if is_open and self._edge is not None and action_id not in self._fetching:
            self._fetch_later(action_id, self._edge)
        return await approvals.await_open(action_id)

    async def decide(
        self, action_id: str, decision: str, *, by: str, reason: str | None = None
    ) -> Decision:
        """Answer an open request of this recorder's own program. It takes no hash: a hash binds a
        person to the text on a card, and here the program that decides made the request itself. An
        answer that comes from a person elsewhere is given to the Edge, with the hash of the card.
        """
        approvals = self._open_approvals()
        return await approvals.apply_decision(action_id, decision, by=by, reason=reason)

    async def _close(self, turn: TurnRecorder, event_class: str, end: dict[str, str]) -> None:
        turn.end_text()
        log = self._open_log()
        await close_open_work(
            log,
            self._open_approvals(),
            self.mint,
            turn.scope,
            category="interrupted",
            message="the turn ended first",
        )
        turn.fact(event_class, end)
        await log.flush()
        await log.save_checkpoint()

    def _answer_action(self, fact: Fact, _: Changes) -> None:
        if fact.event_class == "action.required" and fact.action_id is not None:
            self._open_approvals().answer_later(fact.action_id, self._answer)

    async def _answer(self, action: Action) -> str:
        return "deny" if self._on_ask is None else await self._on_ask(action)

    def _follow_request(self, fact: Fact, _: Changes) -> None:
        """Fetch the decision on a request from the Edge; however it is closed, the Edge knows."""
        if fact.event_class == "action.required" and self._edge is not None:
            self._fetch_later(fact.action_id or "", self._edge)

    def _fetch_later(self, action_id: str, edge: RecordingEdge) -> None:
        task = asyncio.get_running_loop().create_task(self._fetch_decision(action_id, edge))
        self._fetching[action_id] = task
        task.add_done_callback(lambda _: self._fetching.pop(action_id, None))

    async def _fetch_decision(self, action_id: str, edge: RecordingEdge) -> None:
        approvals = self._open_approvals()
        try:
            row = await edge.wait_for_decision(action_id)
            if row.decision is not None and approvals.require_action(action_id).status == "pending":
                await approvals.apply_decision(
                    action_id,
                    row.decision,
                    by=row.decided_by or "edge",
                    reason=row.reason,
                    response=row.response,
                )
        except Exception as error:  # noqa: BLE001 - raised where the decision is awaited
            approvals.fail(action_id, error)

    def _open_log(self) -> ThreadLog:
        if self._log is None:
            raise RuntimeError("open the recorder first: async with Recorder(...) as recorder")
        return self._log

    def _open_approvals(self) -> ActionRequests:
        if self._approvals is None:
            raise RuntimeError("open the recorder first: async with Recorder(...) as recorder")
        return self._approvals


def _failure(error: BaseException) -> dict[str, str]:
    if isinstance(error, TurnFailed):
        return failure_payload(error.code, str(error), error.hint or "Check the message.")
    message = f"{type(error).__name__}: {error}"
    return failure_payload(
        "exception", message, "Fix the cause of the exception, and run the turn again."
    )


def _blobs_beside(journal: str | Journal) -> BlobStore:
    """Blobs go beside a journal that is a file; anywhere else they must be named."""
    if isinstance(journal, str) and journal.startswith("sqlite:"):
        path, _, _ = journal.removeprefix("sqlite:").partition("?")
        return FileBlobs(f"{path}.blobs")
    return MemoryBlobs()
