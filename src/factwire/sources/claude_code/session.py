"""What a converter of Claude Code remembers between two lines.

Lines come from two sides: what the CLI prints, and, where the recording has it, what its host
wrote to it. The host's lines carry no time. Lines of a subagent name the call that started it.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec

from factwire.projection.reading import table, word
from factwire.sources.claude_code.limits import LINES_KEPT, MESSAGES_KEPT
from factwire.sources.telling import Telling


class Stream(msgspec.Struct):
    """The API message that somebody is writing, by the index of its blocks."""

    message_id: str
    parts: dict[int, str] = msgspec.field(default_factory=dict[int, str])
    calls: dict[int, str] = msgspec.field(default_factory=dict[int, str])
    open_part: str | None = None
    reasoned: bool = False
    asserted: bool = False


class Line(msgspec.Struct, frozen=True):
    """What a line said, for when it is taken back."""

    message_id: str
    calls: tuple[str, ...]


class Session:
    """One process of Claude Code, as far as its lines tell."""

    def __init__(self, telling: Telling) -> None:
        self.tell = telling
        self.streams: dict[str | None, Stream] = {}
        self.lines: dict[str, Line] = {}
        self.texts: dict[str, int] = {}
        self.waiting: list[str] = []
        self.prompt: str | None = None
        self.initialised = False
        self.ended = False
        self.cwd: str | None = None
        self.agents: dict[str, str] = {}
        self.background: set[str] = set()
        self.shells: set[str] = set()
        self.asked: dict[str, dict[str, Any]] = {}
        self.denied: set[str] = set()
        self.refused: set[str] = set()
        self.stopping = False
        self.error: str | None = None
        self.cost = 0.0
        self.about: Callable[[dict[str, Any]], dict[str, Any]] = _nothing_more

    def begin(self, prompt: str | None = None) -> None:
        """A turn begins."""
        self.tell.begin(prompt)
        self.prompt = prompt
        self.ended = False
        self.renew()

    def go_on(self) -> None:
        """The next turn begins, with the prompt that has waited longest, if any has."""
        prompt = self.waiting.pop(0) if self.waiting else None
        self.begin(prompt)
        if prompt is not None:
            self.tell_queue()

    def tell_queue(self) -> None:
        rows = [{"prompt": prompt} for prompt in self.waiting]
        self.tell.fact("queue.changed", {"queuedTurns": rows, "queuedTurnCount": len(rows)})

    def renew(self) -> None:
        """Nothing of the turn before counts any more."""
        self.initialised = self.stopping = False
        self.error = None
        self.streams.clear()
        self.denied.clear()
        self.refused.clear()

    def stream(self, speaker: str | None, message_id: str, model: str | None) -> Stream:
        """The message that a speaker is writing; another id is another message."""
        stream = self.streams.get(speaker)
        if stream is None or stream.message_id != message_id:
            stream = self.streams[speaker] = Stream(message_id)
            said = {"model": model}
            self.tell.within(speaker, "model.requested", said, message_id=message_id)
        return stream

    def next_part(self, message_id: str) -> str:
        """The id of the next text of a message: the first has the message's own name."""
        count = self.texts.pop(message_id, 0)
        self.texts[message_id] = count + 1
        while len(self.texts) > MESSAGES_KEPT:
            del self.texts[next(iter(self.texts))]
        return f"{message_id}:text:{count}"

    def remember(self, item: dict[str, Any], message_id: str, calls: list[str]) -> None:
        uuid = word(item, "uuid")
        if uuid is not None:
            self.lines[uuid] = Line(message_id, tuple(calls))
        while len(self.lines) > LINES_KEPT:
            del self.lines[next(iter(self.lines))]

    def speaker(self, item: dict[str, Any]) -> str | None:
        """The subagent that a line is of; its first line opens it."""
        parent, agent = word(item, "parent_tool_use_id"), word(item, "agent_id")
        speaker = agent or self.agents.get(parent or "") or parent
        if speaker is not None and speaker not in self.tell.subagents:
            about = {
                "title": word(item, "task_description"),
                "role": word(item, "subagent_type"),
                "toolCallId": parent,
            }
            self.open_agent(speaker, parent, about, alone=not self.tell.is_open)
        return speaker

    def open_agent(
        self, agent: str, call_id: str | None, about: dict[str, Any], *, alone: bool
    ) -> None:
        """A subagent begins; one that works alone has a turn of its own, which no other ends."""
        if call_id is not None:
            self.agents[call_id] = agent
        own = f"{agent}:turn" if alone else None
        self.tell.subagent(agent, task_id=agent, turn_id=own, **about)


def _nothing_more(request: dict[str, Any]) -> dict[str, Any]:
    """What a host adds to a question that it puts to somebody; a recording has no host."""
    del request
    return {}


def blocks_of(item: dict[str, Any]) -> list[dict[str, Any]]:
    """The content of a line's message, as blocks; a bare text is one."""
    message = table(item.get("message")) or {}
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [each for each in map(table, content if isinstance(content, list) else ()) if each]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - JSON


def text_of(content: Any) -> str:
    """The text of what a tool gave: a text, or the texts among its blocks."""
    if isinstance(content, str):
        return content
    rows = map(table, content if isinstance(content, list) else ())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - JSON
    return "\n".join(text for row in rows if row and (text := word(row, "text")))


def kept_at(path: str | None) -> dict[str, Any]:
    """Where the CLI kept an output: the path for those on its machine, and a ref for the others."""
    if path is None:
        return {}
    name = sha256(path.encode()).hexdigest()[:16]
    return {"outputFile": path, "outputRef": f"claude-code:output:{name}"}
