"""What a watched thread looks like: as a terminal redrawn at its end, plain lines, or JSON facts.

Things are printed in the order in which they began, each once it has ended; text by whole lines
as they come. Text that turns out to be another is printed again, and marked. What is printed for
good scrolls away; nothing takes the whole screen. Output that nobody reads any more never stops a
turn from being written down. Warnings are printed once each, and not without end.
"""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from factwire.cli.terminal import (
    DIM,
    LINE,
    NAME,
    build_line,
    terminal_safe,
    terminal_safe_block,
    to_text,
)
from factwire.facts import Fact, encode_fact
from factwire.facts.json_values import object_at
from factwire.projection import ProjectionState
from factwire.projection.coding import Process
from factwire.projection.messages import (
    ArtifactCardPart,
    EvidenceCitationPart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolPreviewPart,
)
from factwire.projection.tools import Tool
from factwire.runtime import utc_now

_MOST: Final = 20
"""Notices of one command; what comes after them is in the diagnostics of the thread."""


class Notices:
    """Gathers them from facts, until they are taken."""

    def __init__(self) -> None:
        self._shown: set[str] = set()
        self._waiting: list[Text] = []

    def note(self, fact: Fact) -> None:
        message = _warning_text(fact)
        if message is None or message in self._shown or len(self._shown) >= _MOST:
            return
        self._shown.add(message)
        self._waiting.append(Text(f"! {message}", style="yellow"))

    def take(self) -> list[Text]:
        """Those that nobody has taken yet."""
        waiting, self._waiting = self._waiting, []
        return waiting


def _warning_text(fact: Fact) -> str | None:
    """A warning, or that something is tried again."""
    is_notice = fact.event_class == "runtime.warning" or (
        fact.event_class == "run.status" and fact.payload.get("status") == "retrying"
    )
    message = fact.payload.get("message") if is_notice else None
    return terminal_safe(message, 2 * LINE) if isinstance(message, str) else None


_LINES: Final = 6
"""Lines of output that are shown, the last ones."""

_CHARACTERS: Final = 4_000
"""Characters of output that are looked at, the last ones."""

_WIDTH: Final = 500
"""Characters of a line of output; what is longer is data, not text."""

_PROCESSES: Final = 64
"""Processes that are looked through for that of a tool, the newest."""

_DESCRIPTIVE_ARGS: Final = ("command", "argv", "path", "file_path", "url", "query", "pattern")
"""Arguments that tell what a call is about, best first."""


def tool_lines(state: ProjectionState, tool: Tool, now: str | None) -> Iterator[Text]:
    """The row of a call and its output; `now` is for how long one has run that still does."""
    name = tool.tool_name or tool.tool_call_id
    about = tool.title if tool.title and tool.title != name else _describe_args(tool.args)
    outcome = tool.summary or tool.message
    failed = tool.failure_category
    code = f"exit {tool.exit_code}" if tool.exit_code else None
    yield build_line(tool.state, name, about, outcome, code, failed, _duration_text(tool, now))
    process = _find_process(state, tool.tool_call_id)
    output = str(process.output) if process is not None else str(tool.output_text)
    if not output and isinstance(tool.output, str) and tool.completed_at is not None:
        output = tool.output
    if output != outcome:
        yield from _output_lines(output)


def _describe_args(args: Any) -> str | None:
    known = object_at(args) or {}
    value = next((known[name] for name in _DESCRIPTIVE_ARGS if known.get(name)), known or None)
    return None if value is None else to_text(value)[:LINE]


def _output_lines(output: str) -> Iterator[Text]:
    lines = terminal_safe_block(output[-_CHARACTERS:])
    if len(lines) > _LINES or len(output) > _CHARACTERS:
        yield Text("  ⋮", style=DIM)
    for line in lines[-_LINES:]:
        cut = f"{line[:_WIDTH]}…" if len(line) > _WIDTH else line
        yield Text(f"  {cut}", style=DIM)


def _find_process(state: ProjectionState, call: str) -> Process | None:
    newest = islice(reversed(state.processes.values()), _PROCESSES)
    return next((process for process in newest if process.tool_call_id == call), None)


def _duration_text(tool: Tool, now: str | None) -> str | None:
    if tool.duration_ms is not None:
        return f"{tool.duration_ms / 1_000:.1f} s"
    end = tool.completed_at or now
    if tool.started_at is None or end is None:
        return None
    try:
        took = datetime.fromisoformat(end) - datetime.fromisoformat(tool.started_at)
    except (ValueError, TypeError):
        return None
    return f"{max(took.total_seconds(), 0.0):.1f} s"


_REWRITTEN: Final = "(rewritten)"


class _PartLines(NamedTuple):
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
                self._over.update(map(_part_key, message.parts))

    def take(self, state: ProjectionState) -> list[Text]:
        """What can be told for good since it was last asked for."""
        lines: list[Text] = []
        for message, part in self._parts(state):
            part_lines = self._lines_of(state, message, part)
            lines += part_lines.lines
            if not part_lines.over:
                return lines
            self._over.add(_part_key(part))
            self._texts.pop(_part_key(part), None)
        self._skip_ended(state)
        return lines

    def under_way(self, state: ProjectionState, now: str | None) -> list[Text]:
        """What is not told yet, as it stands."""
        lines: list[Text] = []
        for _, part in self._parts(state):
            if isinstance(part, TextPart):
                rest = str(part.text)[len(self._texts.get(_part_key(part), "")) :]
                lines += map(Text, terminal_safe_block(rest))
            elif isinstance(part, ToolPreviewPart) and part.tool_call_id in state.tools:
                lines += tool_lines(state, state.tools[part.tool_call_id], now)
        return lines

    def _parts(self, state: ProjectionState) -> Iterator[tuple[Message, Part]]:
        for message in state.messages[self._first :]:
            for part in message.parts:
                if _part_key(part) not in self._over:
                    yield message, part

    def _lines_of(self, state: ProjectionState, message: Message, part: Part) -> _PartLines:
        if isinstance(part, TextPart):
            return self._text_lines(message, part)
        if isinstance(part, ToolPreviewPart):
            tool = state.tools.get(part.tool_call_id)
            if tool is None or tool.completed_at is None:
                ended = message.turn_id != state.runtime.active_turn_id
                return _PartLines([], over=tool is None or ended)
            return _PartLines(list(tool_lines(state, tool, None)), over=True)
        if isinstance(part, ReasoningPart):
            over = part.state != "streaming"
            summary = terminal_safe_block(str(part.summary)) if over else []
            return _PartLines([Text(line, style=f"{DIM} italic") for line in summary], over=over)
        return _PartLines(_card_lines(state, part), over=True)

    def _text_lines(self, message: Message, part: TextPart) -> _PartLines:
        text, key = str(part.text), _part_key(part)
        if message.role == "user":
            known = message.turn_id == self._turn_id
            return _PartLines([] if known else [_prompt_line(text)], over=True)
        lines: list[Text] = []
        printed = self._texts.get(key, "")
        over = part.state != "streaming"
        if not text.startswith(printed):
            printed = ""
            lines.append(Text(_REWRITTEN, style=DIM))
        whole = text if over else text[: text.rfind("\n") + 1]
        if not printed and whole and message.subagent_id:
            lines.append(Text(f"{terminal_safe(message.subagent_id, NAME)}:", style="bold magenta"))
        lines += map(Text, terminal_safe_block(whole[len(printed) :]))
        self._texts[key] = whole if len(whole) > len(printed) else printed
        if over and part.state == "interrupted" and text:
            lines.append(Text("(interrupted)", style="yellow"))
        return _PartLines(lines, over=over)

    def _skip_ended(self, state: ProjectionState) -> None:
        """Nothing is added to messages of turns that have ended."""
        while self._first < len(state.messages):
            message = state.messages[self._first]
            if message.turn_id is None or not self._is_over(state, message):
                return
            self._over.difference_update(map(_part_key, message.parts))
            self._first += 1

    def _is_over(self, state: ProjectionState, message: Message) -> bool:
        active = state.runtime.active_turn_id
        return message.status != "streaming" and (active is None or message.turn_id != active)


def _part_key(part: Part) -> str:
    return f"{part.message_id}\n{part.part_id}"


def _prompt_line(text: str) -> Text:
    return Text.assemble(("> ", "bold cyan"), (terminal_safe(text, 400), "cyan"))


def _card_lines(state: ProjectionState, part: Part) -> list[Text]:
    if isinstance(part, ArtifactCardPart):
        made = state.artifacts.get(part.artifact_id)
        title = (made and (made.title or made.path)) or part.artifact_id
        return [Text(f"◆ {terminal_safe(title, 2 * NAME)}", style="blue")]
    if isinstance(part, EvidenceCitationPart):
        item = state.evidence.items.get(part.evidence_id)
        title = (item and item.title) or part.evidence_id
        verdict = f"  {terminal_safe(part.verdict, NAME)}" if part.verdict else ""
        return [Text(f"◇ {terminal_safe(title, 2 * NAME)}{verdict}", style="blue")]
    return []


_ROWS: Final = 14
"""Rows at the end of a terminal that are drawn again and again."""

Lost = Callable[[], None]


class PipeAwareConsole(Console):
    """A console that says when nobody reads any more, where another would end the process."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        raise BrokenPipeError


class Display(Protocol):
    """Shows a thread as it goes on."""

    def fact(self, fact: Fact) -> None:
        """A fact that is durable."""
        ...

    def show(self, state: ProjectionState) -> None:
        """How things stand now."""
        ...

    def say(self, *lines: Text) -> None:
        """Something that is no part of the thread."""
        ...

    def close(self, state: ProjectionState) -> None:
        """Nothing more comes."""
        ...


class JsonDisplay:
    """Facts in shape A, one to a line, and nothing else."""

    def __init__(self, lost: Lost) -> None:
        self._lost: Lost | None = lost

    def fact(self, fact: Fact) -> None:
        with _note_lost_reader(self):
            sys.stdout.buffer.write(encode_fact(fact) + b"\n")
            sys.stdout.buffer.flush()

    def show(self, state: ProjectionState) -> None:
        del state

    def say(self, *lines: Text) -> None:
        del lines

    def close(self, state: ProjectionState) -> None:
        del state

    def lose(self) -> None:
        """Tell once that nobody reads any more."""
        lost, self._lost = self._lost, None
        if lost is not None:
            lost()


class PlainDisplay:
    """Lines, each once; what an agent's runtime warns of is among them as it comes."""

    def __init__(self, console: Console, transcript: Transcript, lost: Lost) -> None:
        self._console = console
        self._transcript = transcript
        self._lost: Lost | None = lost
        self._notices = Notices()

    def fact(self, fact: Fact) -> None:
        self._notices.note(fact)

    def show(self, state: ProjectionState) -> None:
        self.say(*self._notices.take(), *self._transcript.take(state))

    def say(self, *lines: Text) -> None:
        with _note_lost_reader(self):
            for line in lines:
                self._console.print(line, soft_wrap=True)
            sys.stdout.flush()

    def close(self, state: ProjectionState) -> None:
        self.show(state)

    def lose(self) -> None:
        """Tell once that nobody reads any more."""
        lost, self._lost = self._lost, None
        if lost is not None:
            lost()


class LiveDisplay:
    """Lines, and below them what is under way."""

    def __init__(self, console: Console, transcript: Transcript, lost: Lost) -> None:
        self._console = console
        self._transcript = transcript
        self._plain = PlainDisplay(console, transcript, lost)
        self._live = Live(
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self.foot: str | None = None
        """What is said at the very end while something goes on."""

    def fact(self, fact: Fact) -> None:
        self._plain.fact(fact)

    def show(self, state: ProjectionState) -> None:
        self._plain.show(state)
        with _note_lost_reader(self._plain):
            self._live.start()
            self._live.update(Group(*self._rows(state)), refresh=True)

    def say(self, *lines: Text) -> None:
        self._plain.say(*lines)

    def pause(self) -> None:
        """Draw nothing until the next `show`, so that something can be asked."""
        with _note_lost_reader(self._plain):
            self._live.stop()

    def close(self, state: ProjectionState) -> None:
        self.pause()
        self._plain.close(state)

    def _rows(self, state: ProjectionState) -> list[Text]:
        width = max(self._console.width, 1)
        rows: list[Text] = []
        for line in self._transcript.under_way(state, utc_now()):
            rows += line.wrap(self._console, width)
        limit = max(1, min(_ROWS, self._console.height - 3))
        foot = _footer_line(state, self.foot)
        foot.truncate(width, overflow="ellipsis")
        return [*rows[-limit:], foot]


def _footer_line(state: ProjectionState, activity: str | None) -> Text:
    now = state.runtime
    words = [activity or now.status, now.model]
    if now.queued_turn_count:
        words.append(f"{now.queued_turn_count} queued")
    shown = [terminal_safe(word, NAME) for word in words if word and word != "unknown"]
    text = " · ".join([*shown, terminal_safe(now.message, LINE)] if now.message else shown)
    return Text(f"⋯ {text}", style=DIM)


class _LosesReader(Protocol):
    def lose(self) -> None: ...


@contextmanager
def _note_lost_reader(display: _LosesReader) -> Generator[None]:
    try:
        yield
    except OSError:
        display.lose()
