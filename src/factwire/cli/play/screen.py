"""The loop that shows a run on a terminal: waits for keys and for the next fact, then draws.

It decides nothing. The screen is an alternate one, and left again however the loop ends.
"""

import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live

from factwire.cli.play.controls import Controls
from factwire.cli.play.keys import KeyReader, keys_at_once, read_keys
from factwire.cli.play.pace import AS_FAST_AS_POSSIBLE, speed_text
from factwire.cli.play.view import Frame, screen

_FRAME: Final = 1 / 30
"""Seconds from one drawing to the next, at least."""

_LOOK: Final = 0.25
"""Seconds after which the size of the terminal is looked at again."""

_ESCAPE: Final = 0.05
"""Seconds in which the rest of a key's bytes must come."""

Clock = Callable[[], float]


def show(
    controls: Controls,
    console: Console,
    terminal: int,
    unit: str,
    *,
    playing: bool,
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
    with _ended_by_signals(), keys_at_once(terminal), live:
        if playing and controls.player.total:
            controls.pace.play(clock())
        while not controls.ended:
            size = console.size
            if (seen := (*_seen(controls), size)) != drawn:
                drawn = seen
                frame = frame_of(controls, unit)
                live.update(screen(frame, size.width, size.height), refresh=True)
            _await_something(controls, terminal, reader, clock)
        console.clear()


def frame_of(controls: Controls, unit: str) -> Frame:
    """What is to be seen now."""
    player, pace = controls.player, controls.pace
    latest = player.latest
    return Frame(
        state=player.state,
        position=player.position,
        total=player.total,
        unit=unit,
        place=latest and latest.place,
        created_at=latest and latest.fact.created_at,
        speed=speed_text(pace.speed),
        playing=pace.playing,
        prompt=controls.prompt,
        helping=controls.helping,
    )


def _seen(controls: Controls) -> tuple[object, ...]:
    """What tells one drawing from the next."""
    pace = controls.pace
    place = controls.player.position
    return place, pace.speed, pace.playing, controls.prompt, controls.helping


def _await_something(controls: Controls, terminal: int, reader: KeyReader, clock: Clock) -> None:
    """Wait for keys or for a fact that is due, not for long, and do what they ask for."""
    pressed = read_keys(terminal, _patience(controls, reader, clock()))
    if pressed is None:
        controls.ended = True
        return
    for key in reader.feed(pressed) if pressed else reader.flush():
        controls.press(key, clock())
    until = clock() + _FRAME
    while controls.pace.advance(clock()) and clock() < until:
        pass


def _patience(controls: Controls, reader: KeyReader, now: float) -> float:
    if reader.unfinished:
        return _ESCAPE
    due = controls.pace.wait(now)
    if due is None:
        return _LOOK
    shortest = 0.0 if controls.pace.speed == AS_FAST_AS_POSSIBLE else _FRAME
    return min(max(due, shortest), _LOOK)


@contextmanager
def _ended_by_signals() -> Generator[None]:
    """Let signals that end a process end the loop first, so that the terminal is restored."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
