"""`LiveAgent`: an outside agent as the runtime sees it, and `LiveTurn`, one turn of it.

The same converter that reads recordings is handed what the agent says and what it is sent, so
a live turn and its recording become the same facts. The runtime has begun the turn and writes
its end; ids and times are its own, and names that a source uses again are new on the thread.
Everything that is the same for all agents is here: a turn is followed to its end, whoever asks
to stop it, a decision finds the turn that waits for it, and what the agent leaves open is
closed. One agent adds its options and how it is started, heard, answered and stopped.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

import msgspec

from factwire.facts import (
    CapabilityManifest,
    Fact,
    entity_of,
    plan_spill,
    redact_fact,
    redact_text,
    redact_value,
)
from factwire.facts.classes.class_tables import ACTION_CLOSERS, TURN_TERMINALS
from factwire.projection import ProjectionState, ThreadReadModel
from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.errors import TurnFailed
from factwire.runtime.mint import FactScope
from factwire.runtime.provider import (
    CancelTurn,
    Decision,
    ReadThread,
    RespondAction,
    StartTurn,
    read_from_facts,
)
from factwire.sources.kit.fact_builder import FactBuilder, KeepRaw, name_raw
from factwire.sources.kit.limits import FACTS_WAITING
from factwire.sources.kit.stream_framing import Item, Unreadable
from factwire.sources.source_registry import Source

Options = TypeVar("Options", bound=msgspec.Struct)


def read_options(settings: AgentSettings, kind: type[Options]) -> Options:
    """The options; raises `InvalidAgent` for what the agent does not take."""
    if settings.base_url is not None:
        raise InvalidAgent(
            f"{settings.kind} does not accept base_url; configure the address of its model in its "
            "own settings"
        )
    try:
        return msgspec.convert(settings.options, kind)
    except msgspec.ValidationError as error:
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        raise InvalidAgent(
            f"the options of {settings.kind}: {error}{_one_of(kind, str(error))}; available "
            f"options: {known}"
        ) from error


def _one_of(kind: type[msgspec.Struct], problem: str) -> str:
    """What an option may be, if the problem is that it is one of a few words."""
    for field in msgspec.structs.fields(kind):
        words = _literal_values(field.type)
        if words and f"`$.{field.encode_name}`" in problem:
            return f" (one of {', '.join(words)})"
    return ""


def _literal_values(kind: Any) -> list[str]:
    """The words of a literal, or of one that may be missing."""
    inside = get_args(kind)
    if get_origin(kind) is Literal:
        return [str(word) for word in inside]
    return [word for each in inside for word in _literal_values(each)]


def own_variables(settings: AgentSettings, *names: str) -> frozenset[str]:
    """Variables that are the agent's own, with the one that holds its key."""
    key = settings.api_key_env
    return frozenset(names if key is None else (*names, key))


_NAMED: Final = ("message_id", "part_id", "tool_call_id")


class LiveFactBuilder(FactBuilder):
    """Makes the facts of one turn. `terminal` is how the turn ended, once the source has said so;
    it is held back, because what goes on beside the turn may have more to say.
    """

    def __init__(
        self, source: str, turn: StartTurn, *, keep: KeepRaw = name_raw, keeps_unknown: bool = False
    ) -> None:
        scope, mint = turn.host.scope, turn.host.mint
        super().__init__(source, thread_id=turn.thread_id, at=mint.clock(), keep=keep)
        self.turn_id = turn.turn_id
        self.terminal: Fact | None = None
        self._scope = scope
        self._mint = mint
        self._keeps_unknown = keeps_unknown
        self._earlier_names = _names_on_thread(turn.history)
        self._names: dict[str, str] = {}
        self._action_ids: dict[str, str] = {}
        self._question_details: dict[str, dict[str, Any]] = {}
        self._decided: set[str] = set()
        self._outliving: set[str] = set()
        self.own_ids: dict[str, Any] = {}

    @property
    def has_background_work(self) -> bool:
        """Whether something that outlives the answer still works."""
        return any(name in self.subagents for name in self._outliving)

    def find_question(self, action_id: str) -> str | None:
        """What the source calls a question of ours."""
        return next(
            (theirs for theirs, ours in self._action_ids.items() if ours == action_id), None
        )

    def note_decision(self, action_id: str) -> None:
        """The runtime has told what was decided; that the source hears of it is no news."""
        self._decided.add(action_id)

    def set_question_details(self, question: str, **about: Any) -> None:
        """What the next question of this name of the source's is shown with."""
        self._question_details[question] = about

    def set_agent_session(self, name: str) -> None:
        """What the source calls this thread; the next turn goes on with it."""
        self.add_fact("session.updated", {"agentSessionId": name})

    def begin_turn(
        self, prompt: str | None = None, *, turn_id: str | None = None, **extra_fields: Any
    ) -> None:
        """The turn has begun already; a source that answers again takes back the end it told."""
        del prompt, turn_id, extra_fields
        self.terminal = None

    def close_open_work(self) -> None:
        """Nothing more comes, of what works beside the turn either."""
        self._close_open_work("interrupted", "the agent ended first", everything=True)

    def set_ids(self, **ids: Any) -> None:
        """Whose facts these are, the runtime says; what the source calls itself is noted."""
        self.own_ids.update(ids)

    def warn(self, code: str, message: str, item: Any) -> None:
        """An item that is not known is named, and kept only where that is wanted."""
        data = item if isinstance(item, bytes) else msgspec.json.encode(item)
        ref = self.keep(data) if self._keeps_unknown else name_raw(data)
        self.add_fact("runtime.warning", {"code": code, "message": message}, ref_ids=(ref,))

    def drain(self) -> list[Fact]:
        facts = super().drain()
        ends = [
            fact for fact in facts if fact.event_class in TURN_TERMINALS and entity_of(fact) is None
        ]
        self.terminal = ends[-1] if ends else self.terminal
        return [fact for fact in facts if fact not in ends]

    def _finish_turn(self, status: str, end: dict[str, Any]) -> None:
        """What follows the end is the runtime's to tell."""

    def _subagent_scope(self, scope: FactScope, turn_id: str | None) -> FactScope:
        if turn_id is not None:
            self._outliving.add(scope.subagent_id or "")
        return scope

    def _ends_with_turn(self, scope: FactScope) -> bool:
        return scope.subagent_id not in self._outliving

    def _append_fact(
        self, scope: FactScope, event_class: str, payload: dict[str, Any], **fields: Any
    ) -> None:
        if fields.get("control") == "steer":
            # What a person says into a turn, the runtime has told already.
            return
        for field in _NAMED:
            if fields.get(field) is not None:
                fields[field] = self.unique_name(fields[field])
        if fields.get("action_id") is not None:
            action_id = self._action_id(event_class, fields["action_id"])
            if event_class in ACTION_CLOSERS and action_id in self._decided:
                return
            if event_class == "action.required":
                payload = {
                    **_with_prompt(payload),
                    **self._question_details.pop(fields["action_id"], {}),
                }
            fields["action_id"] = action_id
        super()._append_fact(scope, event_class, payload, **fields)

    def _action_id(self, event_class: str, name: str) -> str:
        """Our id of a question; a source may use the name of one that was answered again."""
        if event_class == "action.required" or name not in self._action_ids:
            self._action_ids[name] = self._mint.ids("act")
        return self._action_ids[name]

    def unique_name(self, name: str) -> str:
        unique = self._names.get(name)
        if unique is None:
            unique = name if name not in self._earlier_names else f"{name}:{self.turn_id}"
            self._names[name] = unique
        return unique


def _with_prompt(payload: dict[str, Any]) -> dict[str, Any]:
    """What is asked, in words; a source that has none asks about its tool."""
    tool = payload.get("toolName")
    if payload.get("prompt") is not None or not isinstance(tool, str):
        return payload
    return {**payload, "prompt": f"Run {tool}?"}


def _names_on_thread(history: ProjectionState | None) -> frozenset[str]:
    """What the thread's calls, messages and parts are called already."""
    if history is None:
        return frozenset()
    messages = {message.message_id for message in history.messages}
    parts = {part.part_id for message in history.messages for part in message.parts}
    return frozenset({*history.tools, *messages, *parts})


class LiveTurn:
    """The way of a turn's items into facts. What a fact names by a ref is kept as a blob, redacted;
    an item that is not known only with `keep_raw`.
    """

    def __init__(self, source: Source, turn: StartTurn, *, keep_raw: bool = False) -> None:
        self.turn = turn
        self.host = turn.host
        self.is_stopping = False
        self._raw: list[bytes] = []
        self.builder = LiveFactBuilder(
            source.name, turn, keep=self._keep_raw, keeps_unknown=keep_raw
        )
        self.converter = source.converter(self.builder)
        self._ready: asyncio.Queue[Fact | None] = asyncio.Queue()
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def agent_session(self) -> str | None:
        """What the agent calls this thread, as an earlier turn has heard it."""
        history = self.turn.history
        sessions = history.agent_sessions if history is not None else None
        return (sessions or {}).get(self.host.scope.agent_id or "")

    @property
    def agent_session_usage(self) -> dict[str, Any] | None:
        """What the agent had counted on its session by the end of the last turn that told."""
        history = self.turn.history
        usages = history.agent_session_usage if history is not None else None
        return (usages or {}).get(self.host.scope.agent_id or "")

    async def hear(self, item: Item) -> None:
        """Tell one item of the agent; while facts wait to be written, the agent waits too."""
        self.take(item)
        await self._has_room.wait()

    def take(self, item: Item) -> None:
        """Tell one item, of either side, at once."""
        self.builder.at = self.host.mint.clock()
        if isinstance(item, Unreadable):
            self.builder.warn("unreadable_source_item", item.reason, item.data)
        else:
            self.converter.take(item)
        self.pass_on()

    def pass_on(self) -> None:
        """Hand on what was told meanwhile."""
        for fact in self.builder.drain():
            self._ready.put_nowait(fact)
        if self._ready.qsize() > FACTS_WAITING:
            self._has_room.clear()

    def fail(self, failed: TurnFailed) -> None:
        """The agent cannot go on, for a reason that its stream does not tell."""
        if self.builder.terminal is None:
            self.builder.fail_turn(failed.code, str(failed), failed.hint)

    def end(self) -> None:
        """Nothing more comes. A turn that the source did not end was stopped, or was cut off."""
        try:
            self._close()
        finally:
            # Whatever goes wrong here, nobody waits for more.
            self._ready.put_nowait(None)

    def _close(self) -> None:
        self.converter.finish()
        self.pass_on()
        if self.builder.terminal is None and self.is_stopping:
            self.builder.cancel_turn()
        elif self.builder.terminal is None:
            self.builder.close_stream()
        self.builder.close_open_work()
        self.pass_on()

    async def facts(self) -> AsyncIterator[Fact]:
        """Everything that is told, and at last the terminal."""
        while (fact := await self._ready.get()) is not None:
            if self._ready.qsize() <= FACTS_WAITING // 2:
                self._has_room.set()
            await self._write_raw()
            for each in await self._spill(fact):
                yield each
        if self.builder.terminal is not None:
            yield self.builder.terminal

    async def _spill(self, fact: Fact) -> tuple[Fact, ...]:
        """A fact as it travels: what is too big for one is kept, without secrets, and named. What a
        person decides about stays whole until the runtime has taken it in.
        """
        if fact.event_class == "action.required" or plan_spill(fact) is None:
            return (fact,)
        clean = redact_fact(fact).fact
        spill = plan_spill(clean)
        if spill is None:
            return (clean,)
        for blob in spill.blobs:
            await self.host.resources.blobs.put(blob.content, kind=blob.ref.kind)
        return spill.fact, spill.note

    def _keep_raw(self, data: bytes) -> str:
        clean = _redact_item(data)
        self._raw.append(clean)
        return name_raw(clean)

    async def _write_raw(self) -> None:
        while self._raw:
            await self.host.resources.blobs.put(self._raw.pop(0), kind="raw")


def _redact_item(data: bytes) -> bytes:
    """An item as it may be kept."""
    try:
        value: Any = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return redact_text(data.decode("utf-8", "replace"))[0].encode("utf-8", "replace")
    return msgspec.json.encode(redact_value(value)[0])


class LiveAgent(ABC):
    """One outside agent; a turn is one `Work`."""

    def __init__(
        self, source: Source, manifest: CapabilityManifest, *, keep_raw: bool = False
    ) -> None:
        self.manifest = manifest
        self.source = source
        self._keep_raw = keep_raw
        self._running: dict[str, TurnDriver] = {}

    @abstractmethod
    def make_driver(self, live: LiveTurn) -> "TurnDriver":
        """The work of a turn that begins."""

    async def start_turn(self, turn: StartTurn) -> AsyncIterator[Fact]:
        live = LiveTurn(self.source, turn, keep_raw=self._keep_raw)
        driver = self._running[turn.turn_id] = self.make_driver(live)
        task = asyncio.create_task(_run_driver(driver, live))
        try:
            async for fact in live.facts():
                yield fact
            await task
        finally:
            del self._running[turn.turn_id]
            await _wait_for_end(task)

    async def cancel_turn(self, cancel: CancelTurn) -> Fact | None:
        driver = self._running.get(cancel.turn_id)
        if driver is not None:
            driver.live.is_stopping = True
            await driver.stop()
        return None

    async def respond_action(self, respond: RespondAction) -> Fact | None:
        driver = self._running.get(respond.turn_id)
        decision = respond.decision
        question = driver and driver.live.builder.find_question(decision.action_id)
        if driver is None or question is None:
            raise TurnFailed(
                "decision_not_delivered", "nothing is waiting for this decision any longer"
            )
        driver.live.builder.note_decision(decision.action_id)
        await driver.answer(question, decision)
        return None

    async def read_thread(self, read: ReadThread) -> ThreadReadModel | None:
        return read_from_facts(read)


class TurnDriver(ABC):
    """What one turn of an outside agent takes."""

    def __init__(self, live: LiveTurn) -> None:
        self.live = live

    @abstractmethod
    async def run(self) -> None:
        """Do the turn; hand each item to `live.take`. Returning ends the turn."""

    @abstractmethod
    async def answer(self, question: str, decision: Decision) -> None:
        """Hand a decision to the agent; `question` is what the agent calls it."""

    @abstractmethod
    async def stop(self) -> None:
        """Ask the agent to stop; `run` returns soon after, or is cancelled."""


async def _run_driver(driver: TurnDriver, live: LiveTurn) -> None:
    """Let a turn work; however it ends, its stream does too."""
    try:
        await driver.run()
    except TurnFailed as failed:
        live.fail(failed)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in an adapter ends its turn
        live.fail(TurnFailed("provider_error", f"{type(error).__name__}: {error}"))
    finally:
        live.end()


async def _wait_for_end(task: "asyncio.Task[None]") -> None:
    """Wait until nothing of a turn is left; what it raised was told where it was awaited."""
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task
