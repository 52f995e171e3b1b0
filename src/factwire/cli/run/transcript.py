"""A thread as it is told: what is said for good, line by line, and what is still under way.

Things are told in the order in which they began, each once it has ended; text is told by whole
lines as they come. Text that turns out to be another is told again, and said to be.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from rich.text import Text

from factwire.cli.run.tool_rows import tool_lines
from factwire.cli.sections.lines import DIM, NAME
from factwire.cli.terminal_text import harmless, harmless_block
from factwire.projection import ProjectionState
from factwire.projection.parts import (
    ArtifactCardPart,
    EvidenceCitationPart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolPreviewPart,
)

_ANEW: Final = "(written anew)"


class _Told(NamedTuple):
    """Lines to tell now, and whether there is nothing more to come of this."""

    lines: list[Text]
    over: bool


class Transcript:
    """Tells what comes after a state; the prompt of `turn_id` is known to whoever listens."""

    def __init__(self, state: ProjectionState, turn_id: str | None = None) -> None:
        self._turn_id = turn_id
        self._first = len(state.messages)
        self._texts: dict[str, str] = {}
        self._over: set[str] = set()
        for place, message in enumerate(state.messages):
            if not self._is_over(state, message):
                self._first = min(self._first, place)
            else:
                self._over.update(map(_key, message.parts))

    def take(self, state: ProjectionState) -> list[Text]:
        """What can be told for good since it was last asked for."""
        lines: list[Text] = []
        for message, part in self._parts(state):
            told = self._tell(state, message, part)
            lines += told.lines
            if not told.over:
                return lines
            self._over.add(_key(part))
            self._texts.pop(_key(part), None)
        self._pass_by(state)
        return lines

    def under_way(self, state: ProjectionState, now: str | None) -> list[Text]:
        """What is not told yet, as it stands."""
        lines: list[Text] = []
        for _, part in self._parts(state):
            if isinstance(part, TextPart):
                rest = str(part.text)[len(self._texts.get(_key(part), "")) :]
                lines += map(Text, harmless_block(rest))
            elif isinstance(part, ToolPreviewPart) and part.tool_call_id in state.tools:
                lines += tool_lines(state, state.tools[part.tool_call_id], now)
        return lines

    def _parts(self, state: ProjectionState) -> Iterator[tuple[Message, Part]]:
        for message in state.messages[self._first :]:
            for part in message.parts:
                if _key(part) not in self._over:
                    yield message, part

    def _tell(self, state: ProjectionState, message: Message, part: Part) -> _Told:
        if isinstance(part, TextPart):
            return self._text(message, part)
        if isinstance(part, ToolPreviewPart):
            tool = state.tools.get(part.tool_call_id)
            if tool is None or tool.completed_at is None:
                ended = message.turn_id != state.runtime.active_turn_id
                return _Told([], over=tool is None or ended)
            return _Told(list(tool_lines(state, tool, None)), over=True)
        if isinstance(part, ReasoningPart):
            over = part.state != "streaming"
            said = harmless_block(str(part.summary)) if over else []
            return _Told([Text(line, style=f"{DIM} italic") for line in said], over=over)
        return _Told(_card(state, part), over=True)

    def _text(self, message: Message, part: TextPart) -> _Told:
        text, key = str(part.text), _key(part)
        if message.role == "user":
            known = message.turn_id == self._turn_id
            return _Told([] if known else [_prompt(text)], over=True)
        lines: list[Text] = []
        told = self._texts.get(key, "")
        over = part.state != "streaming"
        if not text.startswith(told):
            told = ""
            lines.append(Text(_ANEW, style=DIM))
        whole = text if over else text[: text.rfind("\n") + 1]
        if not told and whole and message.subagent_id:
            lines.append(Text(f"{harmless(message.subagent_id, NAME)}:", style="bold magenta"))
        lines += map(Text, harmless_block(whole[len(told) :]))
        self._texts[key] = whole if len(whole) > len(told) else told
        if over and part.state == "interrupted" and text:
            lines.append(Text("(interrupted)", style="yellow"))
        return _Told(lines, over=over)

    def _pass_by(self, state: ProjectionState) -> None:
        """Nothing is added to messages of turns that have ended."""
        while self._first < len(state.messages):
            message = state.messages[self._first]
            if message.turn_id is None or not self._is_over(state, message):
                return
            self._over.difference_update(map(_key, message.parts))
            self._first += 1

    def _is_over(self, state: ProjectionState, message: Message) -> bool:
        active = state.runtime.active_turn_id
        return message.status != "streaming" and (active is None or message.turn_id != active)


def _key(part: Part) -> str:
    return f"{part.message_id}\n{part.part_id}"


def _prompt(text: str) -> Text:
    return Text.assemble(("> ", "bold cyan"), (harmless(text, 400), "cyan"))


def _card(state: ProjectionState, part: Part) -> list[Text]:
    if isinstance(part, ArtifactCardPart):
        made = state.artifacts.get(part.artifact_id)
        title = (made and (made.title or made.path)) or part.artifact_id
        return [Text(f"◆ {harmless(title, 2 * NAME)}", style="blue")]
    if isinstance(part, EvidenceCitationPart):
        item = state.evidence.items.get(part.evidence_id)
        title = (item and item.title) or part.evidence_id
        verdict = f"  {harmless(part.verdict, NAME)}" if part.verdict else ""
        return [Text(f"◇ {harmless(title, 2 * NAME)}{verdict}", style="blue")]
    return []
