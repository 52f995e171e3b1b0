"""TypeScript declarations of everything that travels, as one module without code.

Vocabularies are unions that stay open to other words. Payloads are known by class: narrowing a
`KnownFact` on its class narrows its payload. Fields beyond the declared ones are allowed on the
wire; `Open<Fact>` is a fact whose other fields can be read, too.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from msgspec import inspect as types

from factwire.facts.classification import KNOWN_CLASSES
from factwire.facts.fact import Fact
from factwire.facts.payloads import Payload
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
from factwire.facts.schemas.words import CLASSES, VOCABULARIES, vocabulary_of

_PRELUDE: Final = """\
// Generated from Factwire's types by `factwire schema typescript`; change those instead.

/** Any JSON object. */
export type JsonObject = { [field: string]: unknown };

/** A type together with the fields that Factwire does not know and keeps. */
export type Open<T> = T & { [field: string]: unknown };

/** A known word, or any other: every vocabulary is open. */
export type OpenWord<Known extends string> = Known | (string & {});
"""

_CLOSED: Final = ("RuntimeClass", "UiClass")


def typescript() -> str:
    """The text of `factwire.d.ts`."""
    nested = _nested_payloads()
    sections = [
        _PRELUDE,
        *(_union(name, CLASSES[name]) for name in _CLOSED),
        f"export type KnownClass = {' | '.join(_CLOSED)};\n",
        "export type EventClass = OpenWord<KnownClass>;\n",
        *(_vocabulary(name, words) for name, words in VOCABULARIES.items()),
        _interface(Payload),
        *(_interface(payload) for payload in (*nested, *PAYLOAD_TYPES)),
        _payload_map(),
        *(_shape(wire) for wire in WIRE_SHAPES),
        *(_union(name, words) for name, words in CLOSED_WORDS.items()),
        *(_interface(other) for other in OTHER_TYPES),
        _alias("InputPart", "One part of an input.", (t.__name__ for t in INPUT_TYPES)),
    ]
    return "\n".join(sections)


def _vocabulary(name: str, words: Iterable[str]) -> str:
    choices = "".join(f'\n  | "{word}"' for word in words)
    return f"export type {name} = OpenWord<{choices}\n>;\n"


def _union(name: str, words: Iterable[str]) -> str:
    choices = "".join(f'\n  | "{word}"' for word in words)
    return f"export type {name} ={choices};\n"


def _alias(name: str, doc: str, choices: Iterable[str]) -> str:
    return f"{_comment(doc)}export type {name} = {' | '.join(choices)};\n"


def _interface(struct: type[msgspec.Struct]) -> str:
    parent = " extends Payload" if issubclass(struct, Payload) and struct is not Payload else ""
    free = ["  [field: string]: unknown;"] if struct is Payload else []
    fields = (_field_line(struct.__name__, field) for field in _fields(struct))
    body = "\n".join([*_tag(struct), *fields, *free])
    return f"{_doc(struct)}export interface {struct.__name__}{parent} {{\n{body}\n}}\n"


def _tag(struct: type[msgspec.Struct]) -> list[str]:
    config = struct.__struct_config__
    return [f'  {config.tag_field}: "{config.tag}";'] if config.tag_field else []


def _fields(struct: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(struct)


def _field_line(owner: str, field: msgspec.structs.FieldInfo) -> str:
    mark = "" if field.required else "?"
    return f"  {field.encode_name}{mark}: {_written(owner, field)};"


def _shape(wire: WireShape) -> str:
    """The interface of a shape, and its variants whose class, and so whose payload, is known."""
    fields = {field.of_fact.name: field for field in wire_fields(wire.shape)}
    body = "\n".join(_shape_line(field, _wire_type(field)) for field in fields.values())
    class_field = fields["event_class"].name
    known = "KnownClass" if wire.classes == "EventClass" else wire.classes
    return f"""\
{_comment(wire.description)}export interface {wire.title} {{
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
    return _written(Fact.__name__, field.of_fact).removesuffix(" | null")


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
    return f"{_comment(doc)}export interface PayloadByClass {{\n{''.join(lines)}}}\n"


def _nested_payloads() -> list[type[Payload]]:
    """Payload types that stand only inside others."""
    inside = {
        part.cls
        for payload in PAYLOAD_TYPES
        for field in _fields(payload)
        for part in _parts(types.type_info(field.type))
        if isinstance(part, types.StructType) and issubclass(part.cls, Payload)
    }
    return sorted(inside - set(PAYLOAD_TYPES), key=lambda payload: payload.__name__)


def _parts(info: types.Type) -> tuple[types.Type, ...]:
    return info.types if isinstance(info, types.UnionType) else (info,)


def _written(owner: str, field: msgspec.structs.FieldInfo) -> str:
    """The type of a field; where it takes words of a vocabulary, that instead of string."""
    written = _type(types.type_info(field.type))
    vocabulary = vocabulary_of(owner, field.encode_name)
    return written.replace("string", vocabulary, 1) if vocabulary else written


def _type(info: types.Type) -> str:
    return _WRITERS[type(info)](info)


def _list(info: Any) -> str:
    item = _type(info.item_type)
    return f"({item})[]" if " | " in item else f"{item}[]"


def _dict(info: Any) -> str:
    value = _type(info.value_type)
    return "JsonObject" if value == "unknown" else f"{{ [key: string]: {value} }}"


def _literal(info: Any) -> str:
    named = (name for name, words in CLOSED_WORDS.items() if set(words) == set(info.values))
    return next(named, " | ".join(f'"{word}"' for word in info.values))


_WRITERS: Final[dict[type[types.Type], Callable[[Any], str]]] = {
    types.AnyType: lambda _: "unknown",
    types.BoolType: lambda _: "boolean",
    types.DictType: _dict,
    types.FloatType: lambda _: "number",
    types.IntType: lambda _: "number",
    types.ListType: _list,
    types.LiteralType: _literal,
    types.NoneType: lambda _: "null",
    types.StrType: lambda _: "string",
    types.StructType: lambda info: info.cls.__name__,
    types.UnionType: lambda info: " | ".join(_type(choice) for choice in info.types),
    types.VarTupleType: _list,
}


def _doc(struct: type[msgspec.Struct]) -> str:
    return _comment(inspect.cleandoc(struct.__doc__)) if struct.__doc__ else ""


def _comment(doc: str) -> str:
    lines = doc.splitlines()
    if len(lines) == 1:
        return f"/** {doc} */\n"
    return "/**\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */\n"
