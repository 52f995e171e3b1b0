"""One behaviour of the contract: an id that tests carry, where it comes from, and a sentence."""

import msgspec


class Requirement(msgspec.Struct, frozen=True):
    """`id` is stable, `source` names the page and section, `sentence` says what holds."""

    id: str
    source: str
    sentence: str


def requirements(source: str, sentences: dict[str, str]) -> tuple[Requirement, ...]:
    """The requirements that one source states, from id → sentence."""
    return tuple(Requirement(name, source, sentence) for name, sentence in sentences.items())
