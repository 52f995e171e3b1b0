"""TypeScript declarations of everything that travels, as one module without code.

Structs are interfaces with their fields under wire names. Vocabularies are unions that stay open
to other words. Payloads are known by class: narrowing a `KnownFact` on its class narrows its
payload. Fields beyond the declared ones are allowed on the wire; `Open<Fact>` is a fact whose
other fields can be read, too.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect as types

from factwire.facts.classes.class_tables import KNOWN_CLASSES
from factwire.facts.classes.payloads import Payload
from factwire.facts.fact import Fact
from factwire.facts.schemas.wire_types import (
    CLASSES,
    CLOSED_WORDS,
    FIELD_VOCABULARIES,
    INPUT_TYPES,
    OTHER_TYPES,
    PAYLOAD_TYPES,
    PAYLOADS,
    VOCABULARIES,
    WIRE_SHAPES,
    FieldVocabularies,
    WireField,
    WireShape,
    vocabulary_of,
    wire_fields,
    wire_spelling,
)


class Glossary(NamedTuple):
    """What a module has names for: vocabularies of fields, closed lists of words, unions."""

    vocabularies: FieldVocabularies
    closed: Mapping[str, tuple[str, ...]]
    unions: Mapping[str, tuple[type[msgspec.Struct], ...]]


def write_interface(
    struct: type[msgspec.Struct],
    glossary: Glossary,
    *,
    parent: str | None = None,
    is_open: bool = False,
) -> str:
    """A struct as an interface; an open one lets fields be read that it does not declare."""
    extends = f" extends {parent}" if parent else ""
    fields = (_field_line(struct.__name__, f, glossary) for f in msgspec.structs.fields(struct))
    others = ["  [field: string]: unknown;"] if is_open else []
    body = "\n".join([*_tag_lines(struct), *fields, *others])
    return f"{_doc(struct)}export interface {struct.__name__}{extends} {{\n{body}\n}}\n"


def write_vocabulary(name: str, words: Iterable[str]) -> str:
    """Words as a type that takes others, too."""
    choices = "".join(f'\n  | "{word}"' for word in words)
    return f"export type {name} = OpenWord<{choices}\n>;\n"


def write_closed_list(name: str, words: Iterable[str]) -> str:
    """Words as a type that takes no other."""
    choices = "".join(f'\n  | "{word}"' for word in words)
    return f"export type {name} ={choices};\n"


def write_alias(name: str, doc: str, choices: Iterable[str]) -> str:
    """A name for any of several types."""
    return f"{write_comment(doc)}export type {name} = {' | '.join(choices)};\n"


def write_comment(doc: str) -> str:
    lines = wire_spelling(doc).splitlines()
    if len(lines) == 1:
        return f"/** {lines[0]} */\n"
    return "/**\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */\n"


def nested_structs(roots: Iterable[type[msgspec.Struct]]) -> list[type[msgspec.Struct]]:
    """The structs that stand in others, however deep, by name; without the roots themselves."""
    outer = list(roots)
    nested: set[type[msgspec.Struct]] = set()
    waiting = list(outer)
    while waiting:
        inside = {s for f in msgspec.structs.fields(waiting.pop()) for s in _structs(f.type)}
        waiting += inside - nested
        nested |= inside
    return sorted(nested - set(outer), key=lambda struct: struct.__name__)


def type_text(owner: str, field: msgspec.structs.FieldInfo, glossary: Glossary) -> str:
    """The type of a field; where it takes words of a vocabulary, that instead of string."""
    plain = _type(types.type_info(field.type), glossary)
    vocabulary_name = vocabulary_of(glossary.vocabularies, owner, field.encode_name)
    return plain.replace("string", vocabulary_name, 1) if vocabulary_name else plain


def _structs(kind: Any) -> Iterator[type[msgspec.Struct]]:
    waiting = [types.type_info(kind)]
    while waiting:
        info = waiting.pop()
        match info:
            case types.StructType():
                yield info.cls
            case types.UnionType():
                waiting += info.types
            case types.ListType() | types.VarTupleType():
                waiting.append(info.item_type)
            case types.DictType():
                waiting.append(info.value_type)
            case _:
                pass


def _tag_lines(struct: type[msgspec.Struct]) -> list[str]:
    config = struct.__struct_config__
    return [f'  {config.tag_field}: "{config.tag}";'] if config.tag_field else []


def _field_line(owner: str, field: msgspec.structs.FieldInfo, glossary: Glossary) -> str:
    mark = "" if field.required else "?"
    return f"  {field.encode_name}{mark}: {type_text(owner, field, glossary)};"


def _doc(struct: type[msgspec.Struct]) -> str:
    return write_comment(inspect.cleandoc(struct.__doc__)) if struct.__doc__ else ""


def _type(info: types.Type, glossary: Glossary) -> str:
    return _WRITERS[type(info)](info, glossary)


def _list(info: Any, glossary: Glossary) -> str:
    item = _type(info.item_type, glossary)
    return f"({item})[]" if " | " in item else f"{item}[]"


def _dict(info: Any, glossary: Glossary) -> str:
    value = _type(info.value_type, glossary)
    return "JsonObject" if value == "unknown" else f"{{ [key: string]: {value} }}"


def _literal(info: Any, glossary: Glossary) -> str:
    closed = glossary.closed.items()
    named = (name for name, words in closed if set(words) == set(info.values))
    return next(named, " | ".join(f'"{word}"' for word in info.values))


def _union(info: Any, glossary: Glossary) -> str:
    classes = {choice.cls for choice in info.types if isinstance(choice, types.StructType)}
    whole = len(classes) == len(info.types)
    named = (name for name, choices in glossary.unions.items() if whole and set(choices) == classes)
    return next(named, " | ".join(_type(choice, glossary) for choice in info.types))


def _constant(word: str) -> Callable[[Any, Glossary], str]:
    return lambda _info, _glossary: word


_WRITERS: Final[dict[type[types.Type], Callable[[Any, Glossary], str]]] = {
    types.AnyType: _constant("unknown"),
    types.BoolType: _constant("boolean"),
    types.CustomType: _constant("string"),
    types.DictType: _dict,
    types.FloatType: _constant("number"),
    types.IntType: _constant("number"),
    types.ListType: _list,
    types.Metadata: lambda info, glossary: _type(info.type, glossary),
    types.LiteralType: _literal,
    types.NoneType: _constant("null"),
    types.StrType: _constant("string"),
    types.StructType: lambda info, _: info.cls.__name__,
    types.UnionType: _union,
    types.VarTupleType: _list,
}


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
_GLOSSARY: Final = Glossary(FIELD_VOCABULARIES, CLOSED_WORDS, {})


def typescript() -> str:
    """The text of `factwire.d.ts`."""
    sections = [
        _PRELUDE,
        *(write_closed_list(name, CLASSES[name]) for name in _CLOSED),
        f"export type KnownClass = {' | '.join(_CLOSED)};\n",
        "export type EventClass = OpenWord<KnownClass>;\n",
        *(write_vocabulary(name, words) for name, words in VOCABULARIES.items()),
        write_interface(Payload, _GLOSSARY, is_open=True),
        *_payload_interfaces(),
        _payload_map(),
        *(_shape_interfaces(wire) for wire in WIRE_SHAPES),
        *(write_closed_list(name, words) for name, words in CLOSED_WORDS.items()),
        *(write_interface(other, _GLOSSARY) for other in OTHER_TYPES),
        write_alias("InputPart", "One part of an input.", (t.__name__ for t in INPUT_TYPES)),
    ]
    return "\n".join(sections)


def _payload_interfaces() -> list[str]:
    """Payloads that stand only inside others, then those of the classes."""
    nested = (kind for kind in nested_structs(PAYLOAD_TYPES) if issubclass(kind, Payload))
    return [
        write_interface(payload, _GLOSSARY, parent=Payload.__name__)
        for payload in (*nested, *PAYLOAD_TYPES)
    ]


def _shape_interfaces(wire: WireShape) -> str:
    """The interface of a shape, and its variants whose class, and so whose payload, is known."""
    fields = {field.of_fact.name: field for field in wire_fields(wire.shape)}
    body = "\n".join(_shape_line(field, _wire_type(field)) for field in fields.values())
    class_field = fields["event_class"].name
    known = "KnownClass" if wire.classes == "EventClass" else wire.classes
    return f"""\
{write_comment(wire.description)}export interface {wire.title} {{
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
    return type_text(Fact.__name__, field.of_fact, _GLOSSARY).removesuffix(" | null")


def _shape_line(field: WireField, type_name: str) -> str:
    """One field of a shape; in place of an optional one, null counts as absent."""
    return (
        f"  {field.name}: {type_name};"
        if field.required
        else f"  {field.name}?: {type_name} | null;"
    )


def _payload_map() -> str:
    lines = (
        f'  "{name}": {PAYLOADS[name].__name__ if name in PAYLOADS else "JsonObject"};\n'
        for name in sorted(KNOWN_CLASSES)
    )
    doc = "The payload of each known class; classes without a type of their own carry any object."
    return f"{write_comment(doc)}export interface PayloadByClass {{\n{''.join(lines)}}}\n"
