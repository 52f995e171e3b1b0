"""What keys do: a table from keys to actions, and the number that is being typed after `g`."""

from collections.abc import Callable
from typing import Final

from factwire.cli.play.pace import Pace
from factwire.cli.play.player import Player

_LONGEST_NUMBER: Final = 16


class Controls:
    """A player and its pace in the hands of a person. `prompt` is a number that is being typed,
    `ended` is whether there was enough.
    """

    def __init__(self, player: Player, pace: Pace) -> None:
        self.player = player
        self.pace = pace
        self.prompt: str | None = None
        self.helping = False
        self.ended = False

    def press(self, key: str, now: float) -> None:
        """Do what a key means; a key without a meaning does nothing."""
        if self.prompt is not None:
            self._type(key)
        elif self.helping:
            self.helping = False
            self.ended = key == "q"
        elif key in MOVES:
            self.pace.pause()
            MOVES[key](self.player)
        elif key in _ACTIONS:
            _ACTIONS[key](self, now)

    def _type(self, key: str) -> None:
        typed = self.prompt or ""
        if key == "enter":
            self.prompt = None
            if typed.lstrip("-"):
                self.pace.pause()
                self.player.seek_place(int(typed))
        elif key == "backspace":
            self.prompt = typed[:-1]
        elif key in ("escape", "q", "g"):
            self.prompt = None
        elif (key in _DIGITS or (key == "-" and not typed)) and len(typed) < _LONGEST_NUMBER:
            self.prompt = typed + key


_DIGITS: Final = frozenset("0123456789")

MOVES: Final[dict[str, Callable[[Player], None]]] = {
    "right": lambda player: player.step(1),
    "left": lambda player: player.step(-1),
    "down": lambda player: player.step(10),
    "up": lambda player: player.step(-10),
    "pagedown": lambda player: player.seek_turn(1),
    "pageup": lambda player: player.seek_turn(-1),
    "home": lambda player: player.seek(0),
    "end": lambda player: player.seek(player.total),
}
"""Key → where it goes; whoever goes somewhere wants to look, so all of them pause."""


def _toggle(controls: Controls, now: float) -> None:
    if controls.pace.playing:
        controls.pace.pause()
    else:
        controls.pace.play(now)


def _ask(controls: Controls, _: float) -> None:
    controls.prompt = ""


def _help(controls: Controls, _: float) -> None:
    controls.helping = True


def _end(controls: Controls, _: float) -> None:
    controls.ended = True


_ACTIONS: Final[dict[str, Callable[[Controls, float], None]]] = {
    "space": _toggle,
    "+": lambda controls, now: controls.pace.change_speed(1, now),
    "=": lambda controls, now: controls.pace.change_speed(1, now),
    "-": lambda controls, now: controls.pace.change_speed(-1, now),
    "g": _ask,
    "?": _help,
    "q": _end,
}

HELP: Final = (
    ("space", "pause, or go on; at the end, start over"),
    ("→ ←", "one fact forward, back"),
    ("↓ ↑", "ten facts forward, back"),
    ("PgDn PgUp", "to the next turn, the one before"),
    ("Home End", "to the beginning, the end"),
    ("+ -", "faster, slower"),
    ("g NUMBER ⏎", "to a place: a sequence, or in a journal a seq"),
    ("?", "this help"),
    ("q", "quit"),
)
"""Keys and what they do, for people."""
