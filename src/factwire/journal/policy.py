"""What may be taken out of a journal, as data.

Retention removes old facts; cursors from before them expire. Compaction removes increments whose
final text is there too, so that a projection of what remains is the projection of everything;
cursors stay valid. Neither moves a seq, and neither touches what an open follower or action needs.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from factwire.journal.cursor import Cursor


class Superseding(msgspec.Struct, frozen=True, kw_only=True):
    """The fact that makes increments redundant: same thread, same turn and the same `same` ids.

    `fields` of the payload count like ids. An increment with a field of `unless` stays: it says
    something that the other does not hold.
    """

    classes: frozenset[str]
    same: tuple[str, ...]
    holds: tuple[str, ...]
    fields: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


_TEXT: Final = ("messageId", "partId", "subagentId")

SUPERSEDED: Final[Mapping[str, Superseding]] = {
    "model.delta": Superseding(classes=frozenset({"model.completed"}), same=_TEXT, holds=("text",)),
    "reasoning.delta": Superseding(
        classes=frozenset({"reasoning.completed"}),
        same=_TEXT,
        holds=("text",),
        unless=("summary", "kind"),
    ),
    "text.delta": Superseding(classes=frozenset({"text.final"}), same=_TEXT, holds=("text",)),
    "plan.delta": Superseding(
        classes=frozenset({"plan.final"}), same=_TEXT, holds=("text",), fields=("planId",)
    ),
    "tool.args.delta": Superseding(
        classes=frozenset({"tool.args"}), same=("toolCallId",), holds=("args", "text")
    ),
    "tool.output.delta": Superseding(
        classes=frozenset({"tool.result"}), same=("toolCallId",), holds=("output", "text")
    ),
}
"""Class of an increment → what supersedes it; any payload field that `holds` names will do."""


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How much to keep; each bound that is set removes what lies beyond it."""

    max_age: int | None = None
    """Seqs behind the head; older facts go."""
    keep_facts: int | None = None
    """Newest facts of the whole journal."""
    keep_per_thread: int | None = None
    """Newest facts of each thread."""


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """Which increments to drop, and how many of the newest facts to leave alone."""

    superseded: Mapping[str, Superseding] = msgspec.field(default_factory=lambda: SUPERSEDED)
    spare: int = 0


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """What `retain` or `compact` did, and what held it back."""

    removed: int
    freed: int
    """Bytes of lines."""
    floor: Cursor
    """Cursors before this one are expired."""
    held_by: tuple[str, ...] = ()
    """Followers and open actions without which more would have gone."""
