"""What a projection remembers of the facts it took, so that a repeat changes nothing.

Ids are kept longer than bodies: an id tells a repeat, a body tells whether it is the same fact.
Both are kept in two generations, so that forgetting costs nothing and memory has a bound.
"""

from hashlib import blake2b
from typing import Any, Final

import msgspec

from factwire.facts.fact import Fact
from factwire.projection.limits import REMEMBERED_FACTS, REMEMBERED_IDS

_encoder: Final = msgspec.json.Encoder(order="deterministic")

Body = Fact | bytes
"""A remembered fact, or, after a restore, its digest."""


def digest_of(body: Body) -> bytes:
    """What two facts have in common exactly when they say the same."""
    if isinstance(body, bytes):
        return body
    return blake2b(_encoder.encode(body), digest_size=16).digest()


class Recent:
    """The last facts taken."""

    __slots__ = ("bodies", "ids", "old_bodies", "old_ids")

    def __init__(self) -> None:
        self.ids: dict[str, None] = {}
        self.old_ids: dict[str, None] = {}
        self.bodies: dict[str, Body] = {}
        self.old_bodies: dict[str, Body] = {}

    def __contains__(self, fact_id: str) -> bool:
        return fact_id in self.ids or fact_id in self.old_ids

    def add(self, fact: Fact) -> None:
        fact_id = fact.id
        self.ids[fact_id] = None
        bodies = self.bodies
        bodies[fact_id] = fact
        if len(bodies) >= REMEMBERED_FACTS:
            self.old_bodies, self.bodies = bodies, {}
            if len(self.ids) >= REMEMBERED_IDS:
                self.old_ids, self.ids = self.ids, {}

    def contradicts(self, fact: Fact) -> bool:
        """Whether another body is remembered under the fact's id."""
        known = self.bodies.get(fact.id) or self.old_bodies.get(fact.id)
        if known is None or known is fact:
            return False
        # Only bytes tell 1 from true and 1.0, and only they are there after a restore.
        return digest_of(known) != digest_of(fact)

    def dump(self) -> dict[str, Any]:
        """As plain data, for a checkpoint."""
        return {
            "ids": [list(self.old_ids), list(self.ids)],
            "bodies": [_digests(self.old_bodies), _digests(self.bodies)],
        }

    def load(self, ids: list[list[str]], bodies: list[dict[str, bytes]]) -> None:
        """Remember what a checkpoint carries."""
        self.old_ids, self.ids = (dict.fromkeys(names) for names in ids)
        self.old_bodies, self.bodies = (dict[str, Body](known) for known in bodies)


def _digests(bodies: dict[str, Body]) -> dict[str, bytes]:
    return {fact_id: digest_of(body) for fact_id, body in bodies.items()}
