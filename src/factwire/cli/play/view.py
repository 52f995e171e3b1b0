"""What is seen while a run plays: a state goes in, a screen comes out. Pure.

A wide screen has the conversation at the left and what goes on at the right; on a narrow one all
stands below each other. A part of which there is nothing takes no room.
"""

import re
from typing import Final

import msgspec
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.layout import Layout
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from factwire.cli import sections
from factwire.cli.play.controls import HELP
from factwire.cli.sections import Section
from factwire.cli.terminal_text import harmless
from factwire.projection import ProjectionState

WIDE: Final = 100
"""Columns from which on there is room for two beside each other."""

_THINGS: Final = 60
"""Things of each kind that are looked at; no screen is higher."""

_FOOT: Final = 2
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)", re.ASCII)
_HINT: Final = "space pause  ←→ step  g go to  ? help  q quit"


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One moment: the state, and where in the run and how fast it is played."""

    state: ProjectionState
    position: int
    total: int
    unit: str
    place: int | None = None
    created_at: str | None = None
    speed: str = "1×"
    playing: bool = False
    prompt: str | None = None
    helping: bool = False


class Fitted:
    """Lines in a limited height: the last that fit, or, where the first count most, those."""

    def __init__(self, lines: list[Text], *, newest: bool) -> None:
        self._lines = lines
        self._newest = newest

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.height or options.max_height
        rows: list[Text] = []
        for line in reversed(self._lines) if self._newest else self._lines:
            wrapped = list(line.wrap(console, max(1, options.max_width)))
            rows = wrapped + rows if self._newest else rows + wrapped
            if len(rows) > room:
                break
        yield Group(*(rows[-room:] if self._newest else _cut(rows, room)))


def screen(frame: Frame, width: int, height: int) -> RenderableType:
    """The whole screen at a size."""
    layout = Layout()
    foot = Layout(status_line(frame, width), name="foot", size=_FOOT)
    body = Layout(name="body")
    layout.split_column(body, foot)
    if frame.helping:
        body.update(Panel(_help(), title="keys"))
        return layout
    panels = _panels(frame.state, height - _FOOT)
    if width >= WIDE:
        left, *right = panels
        column = Layout(name="right", ratio=2)
        column.split_column(*right)
        left.ratio = 3
        body.split_row(left, column)
    else:
        body.split_column(*panels)
    return layout


def page(frame: Frame) -> RenderableType:
    """The same as plain text, at whatever length it has."""
    parts: list[RenderableType] = []
    for section in _parts(frame.state, _THINGS):
        if section.lines:
            lines = (Padding.indent(line, 2) for line in section.lines)
            parts += [Text(section.title, style="bold"), *lines, ""]
    return Group(*parts, status_line(frame, None))


def status_line(frame: Frame, width: int | None) -> RenderableType:
    """Position, time, speed, whether the state is whole, what the thread is doing; then keys."""
    line = Text()
    if frame.prompt is not None:
        line.append(f"go to {frame.unit} {frame.prompt}▌", style="bold")
        return Group(_one_row(line), Text("⏎ go  esc stay", style="dim"))
    if width is not None:
        line.append("▶ " if frame.playing else "‖ ", style="bold green")
    line.append(f"{frame.position:,}/{frame.total:,}", style="bold")
    if frame.created_at:
        line.append(f"  {_time(frame.created_at, short=width is not None and width < WIDE)}")
    if width is not None:
        line.append(f"  {frame.speed}")
    whole = frame.state.hydration.status
    line.append(f"  {whole}", style="green" if whole in ("live", "idle") else "yellow")
    if frame.place is not None:
        line.append(f"  {frame.unit} {frame.place}")
    line.append("  ").append_text(sections.status(frame.state))
    if width is None:
        return line
    return Group(_one_row(line), _one_row(Text(_HINT, style="dim")))


def _parts(state: ProjectionState, team: int) -> list[Section]:
    return [
        sections.conversation(state, _THINGS),
        sections.process(state, _THINGS),
        sections.open_actions(state, _THINGS),
        sections.team(state, team),
    ]


def _panels(state: ProjectionState, height: int) -> list[Layout]:
    """Conversation and process always; approvals and team where there are any."""
    # Of a team every kind shall be seen, so each gets a share of the room.
    talk, process, actions, team = _parts(state, max(1, height // 12))
    panels = [
        Layout(_panel(talk, newest=True), ratio=3, minimum_size=3),
        Layout(_panel(process, newest=True), ratio=2, minimum_size=3),
    ]
    if actions.lines:
        size = min(len(actions.lines) + 2, max(5, height // 3))
        drawn = _panel(actions._replace(title="Approvals"), newest=False, style="yellow")
        panels.append(Layout(drawn, size=size))
    if team.lines:
        drawn = _panel(team, newest=False)
        panels.append(Layout(drawn, size=min(len(team.lines) + 2, max(4, height // 4))))
    return panels


def _panel(section: Section, *, newest: bool, style: str = "default") -> Panel:
    lines = Fitted(section.lines, newest=newest)
    return Panel(lines, title=section.title, title_align="left", border_style=style)


def _cut(rows: list[Text], room: int) -> list[Text]:
    """The first rows; where there are more, the last row that fits says so."""
    return rows if len(rows) <= room else [*rows[: room - 1], Text("…", style="dim")]


def _time(created_at: str, *, short: bool) -> str:
    found = _TIME.match(created_at)
    if found is None:
        return harmless(created_at, 19)
    return found[2] if short else f"{found[1]} {found[2]}"


def _one_row(line: Text) -> Text:
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _help() -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for keys, meaning in HELP:
        table.add_row(Text(keys, style="bold"), meaning)
    return table
