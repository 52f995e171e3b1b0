"""Displays: a terminal that is redrawn at its end, plain lines, or facts as JSON.

What is told for good is ordinary text that scrolls away; nothing takes the whole screen. Output
that nobody reads any more never stops a turn from being written down: it is told to `lost`.
"""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from factwire.cli.run.notices import Notices
from factwire.cli.run.transcript import Transcript
from factwire.cli.sections.lines import DIM, LINE, NAME
from factwire.cli.terminal_text import harmless
from factwire.facts import Fact, encode_fact
from factwire.projection import ProjectionState
from factwire.runtime import utc_now

_ROWS: Final = 14
"""Rows at the end of a terminal that are drawn again and again."""

Lost = Callable[[], None]


class Paper(Console):
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


class Facts:
    """Facts in shape A, one to a line, and nothing else."""

    def __init__(self, lost: Lost) -> None:
        self._lost: Lost | None = lost

    def fact(self, fact: Fact) -> None:
        with _unless_lost(self):
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


class Plain:
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
        with _unless_lost(self):
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


class Drawn:
    """Lines, and below them what is under way."""

    def __init__(self, console: Console, transcript: Transcript, lost: Lost) -> None:
        self._console = console
        self._transcript = transcript
        self._plain = Plain(console, transcript, lost)
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
        with _unless_lost(self._plain):
            self._live.start()
            self._live.update(Group(*self._rows(state)), refresh=True)

    def say(self, *lines: Text) -> None:
        self._plain.say(*lines)

    def rest(self) -> None:
        """Draw nothing until the next `show`, so that something can be asked."""
        with _unless_lost(self._plain):
            self._live.stop()

    def close(self, state: ProjectionState) -> None:
        self.rest()
        self._plain.close(state)

    def _rows(self, state: ProjectionState) -> list[Text]:
        width = max(self._console.width, 1)
        rows: list[Text] = []
        for line in self._transcript.under_way(state, utc_now()):
            rows += line.wrap(self._console, width)
        room = max(1, min(_ROWS, self._console.height - 3))
        foot = _foot(state, self.foot)
        foot.truncate(width, overflow="ellipsis")
        return [*rows[-room:], foot]


def _foot(state: ProjectionState, said: str | None) -> Text:
    now = state.runtime
    words = [said or now.status, now.model]
    if now.queued_turn_count:
        words.append(f"{now.queued_turn_count} queued")
    shown = [harmless(word, NAME) for word in words if word and word != "unknown"]
    text = " · ".join([*shown, harmless(now.message, LINE)] if now.message else shown)
    return Text(f"⋯ {text}", style=DIM)


class _Losing(Protocol):
    def lose(self) -> None: ...


@contextmanager
def _unless_lost(display: _Losing) -> Generator[None]:
    try:
        yield
    except OSError:
        display.lose()
