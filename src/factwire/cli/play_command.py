"""`factwire play`: a recorded run on the terminal; where there is none, its last view as text.

The loop waits for keys and for the next fact, then draws; it decides nothing. The screen is an
alternate one, and left again however the loop ends.
"""

import re
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.layout import Layout
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from factwire.cli import state_sections
from factwire.cli.playback import (
    AS_FAST_AS_POSSIBLE,
    HELP,
    Pace,
    PlaybackControls,
    Player,
    parse_speed,
    speed_text,
)
from factwire.cli.project_command import FamilyOption, RecordingArgument
from factwire.cli.recordings import choose_family, open_recording
from factwire.cli.targets import finish_work
from factwire.cli.terminal import (
    DONE,
    KeyReader,
    Section,
    keys_at_once,
    open_terminal,
    print_note,
    read_keys,
    terminal_safe,
)
from factwire.projection import ProjectionState

WIDE: Final = 100
"""Columns from which on there is room for two beside each other."""

_THINGS: Final = 60
"""Things of each kind that are looked at; no screen is higher."""

_FOOT: Final = 2
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)", re.ASCII)
_HINT: Final = "space pause  ←→ step  g go to  ? help  q quit"


class PlayFrame(msgspec.Struct, frozen=True, kw_only=True):
    """One moment: the state, and where in the run and how fast it is played."""

    state: ProjectionState
    position: int
    total: int
    unit: str
    place: int | None = None
    created_at: str | None = None
    speed: str = "1×"
    is_playing: bool = False
    prompt: str | None = None
    helping: bool = False


class FittedLines:
    """Lines in a limited height: the last that fit, or, where the first count most, those."""

    def __init__(self, lines: list[Text], *, newest: bool) -> None:
        self._lines = lines
        self._newest = newest

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = options.height or options.max_height
        rows: list[Text] = []
        for line in reversed(self._lines) if self._newest else self._lines:
            wrapped = list(line.wrap(console, max(1, options.max_width)))
            rows = wrapped + rows if self._newest else rows + wrapped
            if len(rows) > height:
                break
        yield Group(*(rows[-height:] if self._newest else _cut_rows(rows, height)))


def build_screen(frame: PlayFrame, width: int, height: int) -> RenderableType:
    """The whole screen at a size."""
    layout = Layout()
    foot = Layout(status_line(frame, width), name="foot", size=_FOOT)
    body = Layout(name="body")
    layout.split_column(body, foot)
    if frame.helping:
        body.update(Panel(_help_table(), title="keys"))
        return layout
    panels = _build_panels(frame.state, height - _FOOT)
    if width >= WIDE:
        left, *right = panels
        column = Layout(name="right", ratio=2)
        column.split_column(*right)
        left.ratio = 3
        body.split_row(left, column)
    else:
        body.split_column(*panels)
    return layout


def build_page(frame: PlayFrame) -> RenderableType:
    """The same as plain text, at whatever length it has."""
    parts: list[RenderableType] = []
    for section in _sections(frame.state, _THINGS):
        if section.lines:
            lines = (Padding.indent(line, 2) for line in section.lines)
            parts += [Text(section.title, style="bold"), *lines, ""]
    return Group(*parts, status_line(frame, None))


def status_line(frame: PlayFrame, width: int | None) -> RenderableType:
    """Position, time, speed, whether the state is whole, what the thread is doing; then keys."""
    line = Text()
    if frame.prompt is not None:
        line.append(f"go to {frame.unit} {frame.prompt}▌", style="bold")
        return Group(_one_row(line), Text("⏎ go  esc stay", style="dim"))
    if width is not None:
        line.append("▶ " if frame.is_playing else "‖ ", style="bold green")
    line.append(f"{frame.position:,}/{frame.total:,}", style="bold")
    if frame.created_at:
        line.append(f"  {_time_text(frame.created_at, short=width is not None and width < WIDE)}")
    if width is not None:
        line.append(f"  {frame.speed}")
    whole = frame.state.hydration.status
    line.append(f"  {whole}", style="green" if whole in ("live", "idle") else "yellow")
    if frame.place is not None:
        line.append(f"  {frame.unit} {frame.place}")
    line.append("  ").append_text(state_sections.status_text(frame.state))
    if width is None:
        return line
    return Group(_one_row(line), _one_row(Text(_HINT, style="dim")))


def _sections(state: ProjectionState, team: int) -> list[Section]:
    return [
        state_sections.conversation_section(state, _THINGS),
        state_sections.process_section(state, _THINGS),
        state_sections.open_actions_section(state, _THINGS),
        state_sections.team_section(state, team),
    ]


def _build_panels(state: ProjectionState, height: int) -> list[Layout]:
    """Conversation and process always; approvals and team where there are any."""
    # Of a team every kind shall be seen, so each gets a share of the room.
    talk, process, actions, team = _sections(state, max(1, height // 12))
    panels = [
        Layout(_build_panel(talk, newest=True), ratio=3, minimum_size=3),
        Layout(_build_panel(process, newest=True), ratio=2, minimum_size=3),
    ]
    if actions.lines:
        size = min(len(actions.lines) + 2, max(5, height // 3))
        drawn = _build_panel(actions._replace(title="Approvals"), newest=False, style="yellow")
        panels.append(Layout(drawn, size=size))
    if team.lines:
        drawn = _build_panel(team, newest=False)
        panels.append(Layout(drawn, size=min(len(team.lines) + 2, max(4, height // 4))))
    return panels


def _build_panel(section: Section, *, newest: bool, style: str = "default") -> Panel:
    lines = FittedLines(section.lines, newest=newest)
    return Panel(lines, title=section.title, title_align="left", border_style=style)


def _cut_rows(rows: list[Text], height: int) -> list[Text]:
    """The first rows; where there are more, the last row that fits says so."""
    return rows if len(rows) <= height else [*rows[: height - 1], Text("…", style="dim")]


def _time_text(created_at: str, *, short: bool) -> str:
    found = _TIME.match(created_at)
    if found is None:
        return terminal_safe(created_at, 19)
    return found[2] if short else f"{found[1]} {found[2]}"


def _one_row(line: Text) -> Text:
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _help_table() -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for keys, meaning in HELP:
        table.add_row(Text(keys, style="bold"), meaning)
    return table


_FRAME: Final = 1 / 30
"""Seconds from one drawing to the next, at least."""

_LOOK: Final = 0.25
"""Seconds after which the size of the terminal is looked at again."""

_ESCAPE: Final = 0.05
"""Seconds in which the rest of a key's bytes must come."""

Clock = Callable[[], float]


def show_run(
    controls: PlaybackControls,
    console: Console,
    terminal: int,
    unit: str,
    *,
    is_playing: bool,
    clock: Clock = time.monotonic,
) -> None:
    """Show a run until the person has enough or the terminal is gone."""
    live = Live(
        console=console,
        screen=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    reader, drawn = KeyReader(), None
    with _end_on_signals(), keys_at_once(terminal), live:
        if is_playing and controls.player.total:
            controls.pace.play(clock())
        while not controls.ended:
            size = console.size
            if (seen := (*_frame_key(controls), size)) != drawn:
                drawn = seen
                frame = build_frame(controls, unit)
                live.update(build_screen(frame, size.width, size.height), refresh=True)
            _wait_and_act(controls, terminal, reader, clock)
        console.clear()


def build_frame(controls: PlaybackControls, unit: str) -> PlayFrame:
    """What is to be seen now."""
    player, pace = controls.player, controls.pace
    latest = player.latest
    return PlayFrame(
        state=player.state,
        position=player.position,
        total=player.total,
        unit=unit,
        place=latest and latest.place,
        created_at=latest and latest.fact.created_at,
        speed=speed_text(pace.speed),
        is_playing=pace.is_playing,
        prompt=controls.prompt,
        helping=controls.helping,
    )


def _frame_key(controls: PlaybackControls) -> tuple[object, ...]:
    """What tells one drawing from the next."""
    pace = controls.pace
    place = controls.player.position
    return place, pace.speed, pace.is_playing, controls.prompt, controls.helping


def _wait_and_act(
    controls: PlaybackControls, terminal: int, reader: KeyReader, clock: Clock
) -> None:
    """Wait for keys or for a fact that is due, not for long, and do what they ask for."""
    pressed = read_keys(terminal, _wait_seconds(controls, reader, clock()))
    if pressed is None:
        controls.ended = True
        return
    for key in reader.feed(pressed) if pressed else reader.flush():
        controls.press(key, clock())
    until = clock() + _FRAME
    while controls.pace.advance(clock()) and clock() < until:
        pass


def _wait_seconds(controls: PlaybackControls, reader: KeyReader, now: float) -> float:
    if reader.has_partial_key:
        return _ESCAPE
    due = controls.pace.wait(now)
    if due is None:
        return _LOOK
    shortest = 0.0 if controls.pace.speed == AS_FAST_AS_POSSIBLE else _FRAME
    return min(max(due, shortest), _LOOK)


@contextmanager
def _end_on_signals() -> Generator[None]:
    """Let signals that end a process end the loop first, so that the terminal is restored."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _parse_speed_option(text: str | float) -> float:
    try:
        return parse_speed(text)
    except ValueError:
        raise typer.BadParameter(f"expected a number of at least 0, or max, got {text!r}") from None


def play(
    where: RecordingArgument,
    *,
    thread: FamilyOption = None,
    speed: Annotated[
        float,
        typer.Option(
            metavar="X",
            parser=_parse_speed_option,
            help=(
                "The speed, as a multiple of the recorded one; 0 or max means as fast as possible."
            ),
        ),
    ] = 1.0,
    at: Annotated[
        int | None,
        typer.Option(
            metavar="SEQ",
            help=(
                "Start paused at this position: a sequence of the thread, or a seq of the journal."
            ),
        ),
    ] = None,
) -> None:
    """Play back a recorded run: conversation, process, approvals and team.

    Keys: space pauses, arrows step, PgUp and PgDn move from turn to turn, ? shows all keys, q
    quits. Without a terminal, the last view is printed as text.
    """
    player, unit = finish_work(_load_player(where, thread))
    pace = Pace(player, speed)
    controls = PlaybackControls(player, pace)
    console = Console(highlight=False)
    with open_terminal() as terminal:
        if terminal is None or not sys.stdout.isatty() or console.is_dumb_terminal:
            player.seek(player.total) if at is None else player.seek_place(at)
            console.print(build_page(build_frame(controls, unit)))
        else:
            if at is not None:
                player.seek_place(at)
            show_run(controls, console, terminal, unit, is_playing=at is None)
    raise typer.Exit(DONE)


async def _load_player(where: str, thread: str | None) -> tuple[Player, str]:
    async with open_recording(where) as recording:
        family = await choose_family(recording, thread)
        facts = [placed async for placed in recording.facts(family)]
    if not facts:
        print_note(f"{recording.name} contains no facts")
    return Player(facts, family.thread_id, kept=recording.kept), recording.unit
