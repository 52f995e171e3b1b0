"""How Python types are written in TypeScript: structs as interfaces, fields under their wire names.

A class of our own, such as text that grows, is a string on the wire.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect as types

from factwire.facts.schemas.words import Spoken, vocabulary_of, wire_spelling


class Glossary(NamedTuple):
    """What a module has names for: vocabularies of fields, closed lists of words, unions."""

    spoken: Spoken
    closed: Mapping[str, tuple[str, ...]]
    unions: Mapping[str, tuple[type[msgspec.Struct], ...]]


def interface(
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
    body = "\n".join([*_tag(struct), *fields, *others])
    return f"{_doc(struct)}export interface {struct.__name__}{extends} {{\n{body}\n}}\n"


def vocabulary(name: str, words: Iterable[str]) -> str:
    """Words as a type that takes others, too."""
    choices = "".join(f'\n  | "{word}"' for word in words)
    return f"export type {name} = OpenWord<{choices}\n>;\n"


def closed_list(name: str, words: Iterable[str]) -> str:
    """Words as a type that takes no other."""
    choices = "".join(f'\n  | "{word}"' for word in words)
    return f"export type {name} ={choices};\n"


def alias(name: str, doc: str, choices: Iterable[str]) -> str:
    """A name for any of several types."""
    return f"{comment(doc)}export type {name} = {' | '.join(choices)};\n"


def comment(doc: str) -> str:
    lines = wire_spelling(doc).splitlines()
    if len(lines) == 1:
        return f"/** {lines[0]} */\n"
    return "/**\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */\n"


def contained(roots: Iterable[type[msgspec.Struct]]) -> list[type[msgspec.Struct]]:
    """The structs that stand in others, however deep, by name; without the roots themselves."""
    given = list(roots)
    found: set[type[msgspec.Struct]] = set()
    waiting = list(given)
    while waiting:
        inside = {s for f in msgspec.structs.fields(waiting.pop()) for s in _structs(f.type)}
        waiting += inside - found
        found |= inside
    return sorted(found - set(given), key=lambda struct: struct.__name__)


def written(owner: str, field: msgspec.structs.FieldInfo, glossary: Glossary) -> str:
    """The type of a field; where it takes words of a vocabulary, that instead of string."""
    plain = _type(types.type_info(field.type), glossary)
    spoken = vocabulary_of(glossary.spoken, owner, field.encode_name)
    return plain.replace("string", spoken, 1) if spoken else plain


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


def _tag(struct: type[msgspec.Struct]) -> list[str]:
    config = struct.__struct_config__
    return [f'  {config.tag_field}: "{config.tag}";'] if config.tag_field else []


def _field_line(owner: str, field: msgspec.structs.FieldInfo, glossary: Glossary) -> str:
    mark = "" if field.required else "?"
    return f"  {field.encode_name}{mark}: {written(owner, field, glossary)};"


def _doc(struct: type[msgspec.Struct]) -> str:
    return comment(inspect.cleandoc(struct.__doc__)) if struct.__doc__ else ""


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


def _always(word: str) -> Callable[[Any, Glossary], str]:
    return lambda _info, _glossary: word


_WRITERS: Final[dict[type[types.Type], Callable[[Any, Glossary], str]]] = {
    types.AnyType: _always("unknown"),
    types.BoolType: _always("boolean"),
    types.CustomType: _always("string"),
    types.DictType: _dict,
    types.FloatType: _always("number"),
    types.IntType: _always("number"),
    types.ListType: _list,
    types.LiteralType: _literal,
    types.NoneType: _always("null"),
    types.StrType: _always("string"),
    types.StructType: lambda info, _: info.cls.__name__,
    types.UnionType: _union,
    types.VarTupleType: _list,
}
