"""`LiveTurn`: one turn of an outside agent, item by item, while it runs.

The same converter that reads recordings is handed what the agent says and what it is told, so a
live turn and its recording become the same facts. Facts leave through `facts`, in the order in
which the items came, whoever heard them: the reader of the agent, a decision, or a person's word.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from factwire.facts import Fact, plan_spill, redact_fact, redact_text, redact_value
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import StartTurn
from factwire.sources.framing import Item, Unreadable
from factwire.sources.live.limits import FACTS_WAITING
from factwire.sources.live.telling import LiveTelling
from factwire.sources.source import Source
from factwire.sources.telling import name_raw


class LiveTurn:
    """The way of a turn's items into facts. What a fact names by a ref is kept as a blob, redacted;
    an item that is not known only with `keep_raw`.
    """

    def __init__(self, source: Source, turn: StartTurn, *, keep_raw: bool = False) -> None:
        self.turn = turn
        self.host = turn.host
        self.is_stopping = False
        self._raw: list[bytes] = []
        self.tell = LiveTelling(source.name, turn, keep=self._keep, keeps_unknown=keep_raw)
        self.converter = source.converter(self.tell)
        self._ready: asyncio.Queue[Fact | None] = asyncio.Queue()
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def known_session(self) -> str | None:
        """What the agent calls this thread, as an earlier turn has heard it."""
        history = self.turn.history
        known = history.agent_sessions if history is not None else None
        return (known or {}).get(self.host.scope.agent_id or "")

    async def hear(self, item: Item) -> None:
        """Tell one item of the agent; while facts wait to be written, the agent waits too."""
        self.take(item)
        await self._has_room.wait()

    def take(self, item: Item) -> None:
        """Tell one item, of either side, at once."""
        self.tell.at = self.host.mint.clock()
        if isinstance(item, Unreadable):
            self.tell.warn("unreadable_source_item", item.reason, item.data)
        else:
            self.converter.take(item)
        self.pass_on()

    def pass_on(self) -> None:
        """Hand on what was told meanwhile."""
        for fact in self.tell.drain():
            self._ready.put_nowait(fact)
        if self._ready.qsize() > FACTS_WAITING:
            self._has_room.clear()

    def fail(self, failed: TurnFailed) -> None:
        """The agent cannot go on, for a reason that its stream does not tell."""
        if self.tell.terminal is None:
            self.tell.fail(failed.code, str(failed), failed.hint)

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
        if self.tell.terminal is None and self.is_stopping:
            self.tell.cancel()
        elif self.tell.terminal is None:
            self.tell.cut()
        self.tell.close()
        self.pass_on()

    async def facts(self) -> AsyncIterator[Fact]:
        """Everything that is told, and at last the terminal."""
        while (fact := await self._ready.get()) is not None:
            if self._ready.qsize() <= FACTS_WAITING // 2:
                self._has_room.set()
            await self._write_raw()
            for each in await self._light(fact):
                yield each
        if self.tell.terminal is not None:
            yield self.tell.terminal

    async def _light(self, fact: Fact) -> tuple[Fact, ...]:
        """A fact as it travels: what is too big for one is kept, without secrets, and named."""
        if plan_spill(fact) is None:
            return (fact,)
        clean = redact_fact(fact).fact
        spill = plan_spill(clean)
        if spill is None:
            return (clean,)
        for blob in spill.blobs:
            await self.host.means.blobs.put(blob.content, kind=blob.ref.kind)
        return spill.fact, spill.note

    def _keep(self, data: bytes) -> str:
        clean = _redacted(data)
        self._raw.append(clean)
        return name_raw(clean)

    async def _write_raw(self) -> None:
        while self._raw:
            await self.host.means.blobs.put(self._raw.pop(0), kind="raw")


def _redacted(data: bytes) -> bytes:
    """An item as it may be kept."""
    try:
        value: Any = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return redact_text(data.decode("utf-8", "replace"))[0].encode("utf-8", "replace")
    return msgspec.json.encode(redact_value(value)[0])
