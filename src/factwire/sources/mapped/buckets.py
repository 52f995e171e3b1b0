"""Buckets: which rules may be about an item, found without asking all of them.

Rules are laid out by type, and those of a type by the path that most of them ask for a text at. A
bucket only leaves out rules that cannot hold: whether one does hold is asked of the rule itself.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from factwire.sources.mapped.paths import Value, path_value
from factwire.sources.mapped.rules import Rule


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one type, in their order: all that may hold for each text at a path, and those
    that may hold whatever stands there.
    """

    path: Value | None = None
    by_text: dict[str, tuple[Rule, ...]] = {}
    rest: tuple[Rule, ...] = ()

    def rules(self, item: dict[str, Any]) -> tuple[Rule, ...]:
        """The rules that may be about an item."""
        if self.path is None:
            return self.rest
        text = self.path(item, None)
        return self.by_text.get(text, self.rest) if isinstance(text, str) else self.rest


def bucket_of(rules: Iterable[Rule]) -> Bucket:
    """The rules of a type, laid out."""
    among = tuple(rules)
    asked = Counter(path for rule in among for path in rule.texts)
    if not asked:
        return Bucket(rest=among)
    path = asked.most_common(1)[0][0]
    texts = {text for rule in among for text in rule.texts.get(path, ())}
    return Bucket(
        path=path_value(path),
        by_text={
            text: tuple(rule for rule in among if text in rule.texts.get(path, (text,)))
            for text in texts
        },
        rest=tuple(rule for rule in among if path not in rule.texts),
    )


def buckets_by_type(rules: tuple[Rule, ...]) -> dict[str, Bucket]:
    """Each type that rules name → the rules that may be about items of it."""
    names = {name for rule in rules for name in rule.types}
    return {
        name: bucket_of(rule for rule in rules if not rule.types or name in rule.types)
        for name in names
    }
