"""The conversation in lines: who said what. Tools, reasoning and diagnostics are not part of it."""

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from factwire.cli.sections.lines import DIM, NAME, Section
from factwire.cli.terminal_text import harmless, harmless_lines
from factwire.projection import ProjectionState
from factwire.projection.parts import ArtifactCardPart, EvidenceCitationPart, Message, TextPart

_CHARACTERS: Final = 4_000
"""Characters of one text that are shown, the last ones."""

_SPEAKERS: Final = {"user": "bold cyan", "assistant": "bold green"}


def conversation(state: ProjectionState, last: int) -> Section:
    """The newest messages."""
    messages = state.messages[-last:]
    said = [lines for message in messages if (lines := list(_message(state, message)))]
    spaced = [line for lines in said for line in (Text(" "), *lines)]
    return Section("Conversation", spaced[1:], len(state.messages) - len(messages))


def _message(state: ProjectionState, message: Message) -> Iterator[Text]:
    lines = list(_parts(state, message))
    if not lines:
        return
    if message.status in ("interrupted", "retracted", "stale"):
        lines.append(Text(f"({message.status})", style="yellow"))
    elif message.status == "streaming":
        lines[-1].append(" ▌", style="green")
    speaker = _speaker(state, message)
    style = _SPEAKERS.get(speaker, "bold magenta")
    yield Text.assemble((harmless(speaker, NAME), style), "  ", lines[0])
    yield from lines[1:]


def _speaker(state: ProjectionState, message: Message) -> str:
    if message.subagent_id is None:
        return message.role
    thread = state.subagents.threads.get(message.subagent_id)
    return (thread and (thread.name or thread.title)) or message.subagent_id


def _parts(state: ProjectionState, message: Message) -> Iterator[Text]:
    for part in message.parts:
        if isinstance(part, TextPart):
            yield from _text(str(part.text))
        elif isinstance(part, ArtifactCardPart):
            made = state.artifacts.get(part.artifact_id)
            title = (made and made.title) or part.artifact_id
            yield Text(f"[artifact: {harmless(title, NAME)}]", style="blue")
        elif isinstance(part, EvidenceCitationPart):
            item = state.evidence.items.get(part.evidence_id)
            title = (item and item.title) or part.evidence_id
            verdict = f" – {harmless(part.verdict, NAME)}" if part.verdict else ""
            yield Text(f"[evidence: {harmless(title, NAME)}{verdict}]", style="blue")


def _text(text: str) -> Iterator[Text]:
    before = len(text) - _CHARACTERS
    if before > 0:
        yield Text(f"({before:,} characters before this)", style=DIM)
    if text.strip():
        yield from map(Text, harmless_lines(text[max(0, before) :]))
