"""`factwire project`: what facts come to on a screen, all of them or up to any point."""

import sys
from collections.abc import Callable
from typing import Annotated, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from factwire.cli import state_sections
from factwire.cli.recordings import choose_family, open_recording
from factwire.cli.targets import run_work
from factwire.cli.terminal import DONE, Section, print_note, terminal_safe
from factwire.projection import Projection, ProjectionState

RecordingArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE|JOURNAL-URL",
        help="A file of facts, an evidence pack, - for standard input, a journal's file, "
        "sqlite:PATH, postgres://… or nats://….",
        show_default=False,
    ),
]
FamilyOption = Annotated[
    str | None,
    typer.Option(
        metavar="ID", help="The thread, with its child threads; required if there are several."
    ),
]
PlaceOption = Annotated[
    int | None,
    typer.Option(
        metavar="SEQ",
        help="Only up to this position: a sequence of the thread, or a seq of the journal.",
    ),
]

_SHOWN: Final = 20
"""Things of each kind that are shown to a person."""

_SECTIONS: Final[tuple[Callable[[ProjectionState, int], Section], ...]] = (
    state_sections.conversation_section,
    state_sections.tools_section,
    state_sections.open_actions_section,
    state_sections.tasks_section,
    state_sections.artifacts_section,
    state_sections.evidence_section,
    state_sections.team_section,
    state_sections.diagnostics_section,
)


def project(
    where: RecordingArgument,
    *,
    thread: FamilyOption = None,
    at: PlaceOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole state as one JSON document.")
    ] = False,
) -> None:
    """Show the state that facts produce: conversation, tools, open actions, tasks, team …

    Takes facts in any form and shape, and any journal. Facts that break rules are shown as far as
    possible.
    """
    run_work(_show_projection(where, thread, at, as_json=as_json))


async def _show_projection(where: str, thread: str | None, at: int | None, *, as_json: bool) -> int:
    async with open_recording(where) as recording:
        family = await choose_family(recording, thread)
        projection = Projection(family.thread_id)
        take = projection.replay if recording.kept else projection.apply_ordered
        facts = 0
        async for _, fact in recording.facts(family, at):
            take(fact)
            facts += 1
    projection.close()
    if not facts:
        print_note(f"{recording.name} contains no facts{f' up to {at}' if at is not None else ''}")
    if as_json:
        sys.stdout.buffer.write(projection.snapshot() + b"\n")
        sys.stdout.buffer.flush()
    else:
        Console(highlight=False).print(build_summary(projection.state))
    return DONE


def build_summary(state: ProjectionState) -> RenderableType:
    """The state for a person; parts of which there is nothing are left out."""
    parts: list[RenderableType] = [_headline_rows(state)]
    for build in _SECTIONS:
        section = build(state, _SHOWN)
        if section.lines:
            parts += ["", *_section_rows(section)]
    return Group(*parts)


def _headline_rows(state: ProjectionState) -> RenderableType:
    rows = [
        ("thread", Text(terminal_safe(state.thread_id or "unnamed", 80))),
        ("title", Text(terminal_safe(state.title or "", 80))),
        ("status", state_sections.status_text(state)),
        ("facts", state_sections.hydration_text(state)),
    ]
    return Group(*(Text.assemble((f"{name:<8}", "bold"), text) for name, text in rows if text))


def _section_rows(section: Section) -> list[RenderableType]:
    """A heading and its lines, which wrap under themselves."""
    drawn: list[RenderableType] = [Text(section.title, style="bold")]
    if section.left_out:
        words = f"{section.left_out:,} more; use --json to see all"
        drawn.append(Padding.indent(Text(words, style="bright_black"), 2))
    return [*drawn, *(Padding.indent(line, 2) for line in section.lines)]
