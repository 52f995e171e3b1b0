"""What is new in every run and therefore never a difference: ids, times, and texts that hold them.

A ULID, a UUID and a moment in time are known by their form, wherever they stand. Any other id is
known because a fact of the run carries it as one, and hidden only where it could not be taken for
a word: as a whole value it must hold a digit, `_`, `-` or `:`, within a text a digit. Names stay:
an agent id or a model says who worked, and is the same in every run.
"""

import re
from collections.abc import Iterable
from operator import attrgetter
from typing import Any, Final, cast

from factwire.facts import CORRELATION_IDS, Fact
from factwire.facts.ids import ATTRIBUTES

HIDDEN: Final = "<id>"
MOMENT: Final = "<time>"

_NAMES: Final = frozenset({"agentId", "agent_id", "runtimeId", "runtime_id", "modelId", "model_id"})
_MINTED: Final = tuple(ATTRIBUTES[name] for name in CORRELATION_IDS if name not in _NAMES)
_ids_of: Final = attrgetter("id", *_MINTED)
_ID_KEYS: Final = ("Id", "_id")

_FORMS: Final = re.compile(
    r"(?P<time>\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)"
    r"|(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])"
    r"|(?<![0-9A-Za-z])[0-7](?:[0-9A-HJKMNP-TV-Z]{25}|[0-9a-hjkmnp-tv-z]{25})(?![0-9A-Za-z])"
)
_WORD: Final = re.compile(r"[\w-]+")
_NO_WORD: Final = re.compile(r"[\d_:-]")
_DIGIT: Final = re.compile(r"\d")
_SHORTEST: Final = 4


class Volatile:
    """The ids of one run, gathered fact by fact, and texts without them."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def note(self, fact: Fact) -> None:
        """Take in the ids of a fact."""
        self._ids.update(cast("Iterable[str]", _ids_of(fact)))
        for name, value in fact.payload.items():
            if name.endswith(_ID_KEYS) and isinstance(value, str) and name not in _NAMES:
                self._ids.add(value)

    def _is_id(self, text: str, sign: re.Pattern[str]) -> bool:
        """Whether a text is an id of this run and, by this sign, could be nothing else."""
        if len(text) < _SHORTEST or text not in self._ids or "\n" in text:
            return False
        return sign.search(text) is not None

    def hide(self, value: Any) -> Any:
        """The value without anything that is new in every run."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list | tuple):
            return [self.hide(each) for each in cast("Iterable[Any]", value)]
        if isinstance(value, dict):
            table = cast("dict[str, Any]", value)
            return {name: self.hide(each) for name, each in table.items()}
        return value

    def _text(self, text: str) -> str:
        if self._is_id(text, _NO_WORD):
            return HIDDEN
        formed = _FORMS.sub(lambda found: MOMENT if found["time"] else HIDDEN, text)
        return _WORD.sub(self._word, formed)

    def _word(self, found: re.Match[str]) -> str:
        return HIDDEN if self._is_id(found[0], _DIGIT) else found[0]
