"""TypeScript declarations of everything that travels, as one module without code.

Vocabularies are unions that stay open to other words. Payloads are known by class: narrowing a
`KnownFact` on its class narrows its payload. Fields beyond the declared ones are allowed on the
wire; `Open<Fact>` is a fact whose other fields can be read, too.
"""

from typing import Final

from factwire.facts.classification import KNOWN_CLASSES
from factwire.facts.fact import Fact
from factwire.facts.payloads import Payload
from factwire.facts.schemas.declarations import (
    Glossary,
    alias,
    closed_list,
    comment,
    contained,
    interface,
    vocabulary,
    written,
)
from factwire.facts.schemas.wire_types import (
    CLOSED_WORDS,
    INPUT_TYPES,
    OTHER_TYPES,
    PAYLOAD_TYPES,
    PAYLOADS,
    WIRE_SHAPES,
    WireField,
    WireShape,
    wire_fields,
)
from factwire.facts.schemas.words import CLASSES, SPOKEN, VOCABULARIES

_PRELUDE: Final = """\
// Generated from Factwire's types by `factwire schema typescript`; change those instead.

/** Any JSON object. */
export type JsonObject = { [field: string]: unknown };

/** A type together with the fields that Factwire does not know and keeps. */
export type Open<T> = T & { [field: string]: unknown };

/** A known word, or any other: every vocabulary is open. */
export type OpenWord<Known extends string> = Known | (string & {});
"""

_CLOSED: Final = ("RuntimeClass", "EdgeClass", "UiClass")
_GLOSSARY: Final = Glossary(SPOKEN, CLOSED_WORDS, {})


def typescript() -> str:
    """The text of `factwire.d.ts`."""
    sections = [
        _PRELUDE,
        *(closed_list(name, CLASSES[name]) for name in _CLOSED),
        f"export type KnownClass = {' | '.join(_CLOSED)};\n",
        "export type EventClass = OpenWord<KnownClass>;\n",
        *(vocabulary(name, words) for name, words in VOCABULARIES.items()),
        interface(Payload, _GLOSSARY, is_open=True),
        *_payloads(),
        _payload_map(),
        *(_shape(wire) for wire in WIRE_SHAPES),
        *(closed_list(name, words) for name, words in CLOSED_WORDS.items()),
        *(interface(other, _GLOSSARY) for other in OTHER_TYPES),
        alias("InputPart", "One part of an input.", (t.__name__ for t in INPUT_TYPES)),
    ]
    return "\n".join(sections)


def _payloads() -> list[str]:
    """Payloads that stand only inside others, then those of the classes."""
    nested = (kind for kind in contained(PAYLOAD_TYPES) if issubclass(kind, Payload))
    return [
        interface(payload, _GLOSSARY, parent=Payload.__name__)
        for payload in (*nested, *PAYLOAD_TYPES)
    ]


def _shape(wire: WireShape) -> str:
    """The interface of a shape, and its variants whose class, and so whose payload, is known."""
    fields = {field.of_fact.name: field for field in wire_fields(wire.shape)}
    body = "\n".join(_shape_line(field, _wire_type(field)) for field in fields.values())
    class_field = fields["event_class"].name
    known = "KnownClass" if wire.classes == "EventClass" else wire.classes
    return f"""\
{comment(wire.description)}export interface {wire.title} {{
{body}
}}

/** A {wire.title} of class `C`, with the payload of that class. */
export type {wire.title}Of<C extends {known}> = Omit<{wire.title}, "{class_field}" | "payload"> & {{
  {class_field}: C;
{_shape_line(fields["payload"], "PayloadByClass[C]")}
}};

/** A {wire.title} of any known class; narrow it by `{class_field}`. */
export type Known{wire.title} = {{ [C in {known}]: {wire.title}Of<C> }}[{known}];
"""


def _wire_type(field: WireField) -> str:
    return written(Fact.__name__, field.of_fact, _GLOSSARY).removesuffix(" | null")


def _shape_line(field: WireField, written: str) -> str:
    """One field of a shape; in place of an optional one, null counts as absent."""
    return (
        f"  {field.name}: {written};" if field.required else f"  {field.name}?: {written} | null;"
    )


def _payload_map() -> str:
    lines = (
        f'  "{name}": {PAYLOADS[name].__name__ if name in PAYLOADS else "JsonObject"};\n'
        for name in sorted(KNOWN_CLASSES)
    )
    doc = "The payload of each known class; classes without a type of their own carry any object."
    return f"{comment(doc)}export interface PayloadByClass {{\n{''.join(lines)}}}\n"
