"""`factwire project`: what facts come to on a screen, all of them or up to any point."""

import sys
from collections.abc import Callable
from typing import Annotated, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from factwire.cli import sections
from factwire.cli.failures import DONE
from factwire.cli.journal.access import run
from factwire.cli.recording import chosen, note, open_recording
from factwire.cli.sections import Section
from factwire.cli.terminal_text import harmless
from factwire.projection import Projection, ProjectionState

Where = Annotated[
    str,
    typer.Argument(
        metavar="FILE|JOURNAL-URL",
        help="A file of facts, an evidence pack, - for standard input, a journal's file, "
        "sqlite:PATH, postgres://… or nats://….",
        show_default=False,
    ),
]
Thread = Annotated[
    str | None,
    typer.Option(
        metavar="ID", help="The thread, with its child threads; needed where there are several."
    ),
]
At = Annotated[
    int | None,
    typer.Option(
        metavar="SEQ",
        help="Only up to this place: a sequence of the thread, or in a journal its seq.",
    ),
]

_SHOWN: Final = 20
"""Things of each kind that are shown to a person."""

_SECTIONS: Final[tuple[Callable[[ProjectionState, int], Section], ...]] = (
    sections.conversation,
    sections.tools,
    sections.open_actions,
    sections.tasks,
    sections.artifacts,
    sections.evidence,
    sections.team,
    sections.diagnostics,
)


def project(
    where: Where,
    *,
    thread: Thread = None,
    at: At = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole state as one JSON document.")
    ] = False,
) -> None:
    """Show the state that facts come to: conversation, tools, open actions, tasks, team …

    Takes facts in any form and shape, and any journal. Facts that break rules are shown as far as
    that goes.
    """
    run(_project(where, thread, at, as_json=as_json))


async def _project(where: str, thread: str | None, at: int | None, *, as_json: bool) -> int:
    async with open_recording(where) as recording:
        family = await chosen(recording, thread)
        projection = Projection(family.thread_id)
        take = projection.replay if recording.kept else projection.apply
        facts = 0
        async for _, fact in recording.facts(family, at):
            take(fact)
            facts += 1
    if not facts:
        note(f"{recording.name} holds no facts{f' up to {at}' if at is not None else ''}")
    if as_json:
        sys.stdout.buffer.write(projection.snapshot() + b"\n")
        sys.stdout.buffer.flush()
    else:
        Console(highlight=False).print(summary(projection.state))
    return DONE


def summary(state: ProjectionState) -> RenderableType:
    """The state for a person; parts of which there is nothing are left out."""
    parts: list[RenderableType] = [_headline(state)]
    for build in _SECTIONS:
        section = build(state, _SHOWN)
        if section.lines:
            parts += ["", *_drawn(section)]
    return Group(*parts)


def _headline(state: ProjectionState) -> RenderableType:
    rows = [
        ("thread", Text(harmless(state.thread_id or "unnamed", 80))),
        ("title", Text(harmless(state.title or "", 80))),
        ("status", sections.status(state)),
        ("facts", sections.hydration(state)),
    ]
    return Group(*(Text.assemble((f"{name:<8}", "bold"), text) for name, text in rows if text))


def _drawn(section: Section) -> list[RenderableType]:
    """A heading and its lines, which wrap under themselves."""
    drawn: list[RenderableType] = [Text(section.title, style="bold")]
    if section.left_out:
        words = f"{section.left_out:,} more; --json has them all"
        drawn.append(Padding.indent(Text(words, style="bright_black"), 2))
    return [*drawn, *(Padding.indent(line, 2) for line in section.lines)]
