"""Hypothesis strategies: facts in every shape, whole and damaged."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from factwire.facts.fact import Fact
from tests.facts import spec
from tests.facts.samples import wire

texts = st.text(max_size=12)
words = st.text(min_size=1, max_size=12)
odd_keys = st.sampled_from(["", "$", ".", "[0]", "é", "\u202e", "a b", "x", "__proto__", "preview"])
keys = odd_keys | st.text(max_size=6)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
"""JSON that survives a round trip through text."""

python_values = st.recursive(
    scalars
    | st.floats()
    | st.integers(-(10**40), 10**40)
    | st.text(st.characters(codec=None), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
"""Anything a JSON library may hand over, with lone surrogates, NaN and huge numbers."""

payloads = st.dictionaries(keys, json_values, max_size=4)

runtime_class_names = st.sampled_from(spec.RUNTIME_CLASSES)
class_names = (
    runtime_class_names
    | st.sampled_from(spec.UI_CLASSES)
    | words.filter(lambda name: name not in spec.ALIASES and name != "unknown")
)
sequences = st.integers(-(2**53) + 1, 2**53 - 1)

_FIELDS = [field for field in msgspec.structs.fields(Fact) if field.encode_name]
_KNOWN = {field.encode_name for field in _FIELDS}
_TEXT_FIELDS = [
    field.encode_name
    for field in _FIELDS
    if field.type == str | None and field.encode_name != "eventClass"
]
_TAKEN = _KNOWN | {"type", "eventId", "timestamp"}
unknown_fields = st.dictionaries(
    (keys | words).filter(lambda key: key not in _TAKEN), json_values, max_size=3
)
"""Fields that no shape knows."""

_ref_lists = st.lists(words, max_size=2).map(tuple)


@st.composite
def facts(draw: st.DrawFn) -> Fact:
    """Typed facts with any ids, any payload and unknown fields."""
    texts_by_name = draw(st.dictionaries(st.sampled_from(_TEXT_FIELDS), texts, max_size=6))
    value: dict[str, Any] = {
        **texts_by_name,
        "id": draw(words),
        "kind": draw(st.sampled_from(spec.KINDS) | texts),
        "status": draw(st.sampled_from(spec.STATUSES) | texts),
        "title": draw(texts),
        "createdAt": draw(texts),
        "schemaVersion": draw(texts),
        "runtimeId": draw(texts),
        "sequence": draw(sequences),
        "payload": draw(payloads),
    }
    name = draw(st.none() | class_names)
    if name is not None:
        value["eventClass"] = name
    for refs in ("refIds", "artifactRefs", "evidenceRefs"):
        value[refs] = draw(_ref_lists)
    extra = draw(unknown_fields)
    return msgspec.convert({**value, **({"": extra} if extra else {})}, Fact)


@st.composite
def runtime_facts(draw: st.DrawFn) -> Fact:
    """Facts that shape B can state: they name a session and count from zero."""
    fact = draw(facts())
    return msgspec.structs.replace(
        fact, session_id=draw(texts), sequence=draw(st.integers(0, 2**53 - 1))
    )


class Mutation:
    """Ways to damage a fact in shape A, so that each rule is met now and then."""

    odd: st.SearchStrategy[Any] = st.sampled_from([None, "", 0, -1, 2**53, 1.5, [], [""], True])
    values = json_values | odd

    @staticmethod
    @st.composite
    def wires(draw: st.DrawFn) -> dict[str, Any]:
        """A fact in shape A, with some fields dropped, replaced or added."""
        name = draw(class_names)
        value = wire(name, draw(sequences), payload=draw(payloads))
        for key in draw(st.lists(st.sampled_from(sorted(_KNOWN)), max_size=3)):
            value[key] = draw(Mutation.values)
        for key in draw(st.lists(st.sampled_from(sorted(value)), max_size=1)):
            del value[key]
        return {**value, **draw(unknown_fields)}
