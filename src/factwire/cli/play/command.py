"""`factwire play`: a recorded run on the terminal; where there is none, its last view as text."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from factwire.cli.failures import DONE
from factwire.cli.journal.access import done
from factwire.cli.play.controls import Controls
from factwire.cli.play.keys import keyboard
from factwire.cli.play.pace import Pace, parsed_speed
from factwire.cli.play.player import Player
from factwire.cli.play.screen import frame_of, show
from factwire.cli.play.view import page
from factwire.cli.project import Thread, Where
from factwire.cli.recording import chosen, note, open_recording


def _speed(text: str | float) -> float:
    try:
        return parsed_speed(text)
    except ValueError:
        raise typer.BadParameter(f"expected a number from 0 on, or max, got {text!r}") from None


def play(
    where: Where,
    *,
    thread: Thread = None,
    speed: Annotated[
        float,
        typer.Option(
            metavar="X",
            parser=_speed,
            help="How many times as fast as it was recorded; 0 or max: as fast as possible.",
        ),
    ] = 1.0,
    at: Annotated[
        int | None,
        typer.Option(
            metavar="SEQ",
            help="Begin at this place, paused: a sequence of the thread, or in a journal its seq.",
        ),
    ] = None,
) -> None:
    """Play a recorded run: conversation, process, approvals and team, as they came.

    Keys: space pauses, arrows step, PgUp and PgDn go from turn to turn, ? shows all of them, q
    quits. Without a terminal the last view is printed as text.
    """
    player, unit = done(_loaded(where, thread))
    pace = Pace(player, speed)
    controls = Controls(player, pace)
    console = Console(highlight=False)
    with keyboard() as terminal:
        if terminal is None or not sys.stdout.isatty() or console.is_dumb_terminal:
            player.seek(player.total) if at is None else player.seek_place(at)
            console.print(page(frame_of(controls, unit)))
        else:
            if at is not None:
                player.seek_place(at)
            show(controls, console, terminal, unit, playing=at is None)
    raise typer.Exit(DONE)


async def _loaded(where: str, thread: str | None) -> tuple[Player, str]:
    async with open_recording(where) as recording:
        family = await chosen(recording, thread)
        facts = [placed async for placed in recording.facts(family)]
    if not facts:
        note(f"{recording.name} holds no facts")
    return Player(facts, family.thread_id, kept=recording.kept), recording.unit
