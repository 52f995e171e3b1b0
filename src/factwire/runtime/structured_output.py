"""Structured output: a turn that is asked for JSON by a schema ends with JSON that fits, or fails.

The option `outputSchema` of a turn is a JSON Schema. Each agent hands it to its SDK or program by
that one's own mechanism, and the turn's end carries `structuredOutput`; nothing is ever read out of
prose. Whoever made the output, the runtime validates it here before the turn may complete. Null in
place of an optional field counts as absent, as everywhere in facts, and a missing field that may be
null as null. A schema is never fetched from anywhere: a reference that leads out of it cannot be
followed.
"""

from typing import TYPE_CHECKING, Any, Final, cast

from factwire.facts import CapabilityManifest
from factwire.facts.json_values import list_at, object_at, text_at
from factwire.runtime.errors import TurnFailed
from factwire.runtime.limits import OUTPUT_PROBLEM_CHARACTERS

if TYPE_CHECKING:
    from pydantic_ai import ModelResponse

OUTPUT_SCHEMA: Final = "outputSchema"

Schema = dict[str, Any]


class OutputMisfit(ValueError):
    """An output that does not fit; the message says where and why."""


class OutputSchema:
    """What the output of one turn has to look like; raises `TurnFailed` where that is no schema."""

    def __init__(self, schema: Schema) -> None:
        # Most turns have no schema, and the library takes a while to load.
        from jsonschema import SchemaError  # noqa: PLC0415
        from jsonschema.validators import Draft202012Validator, validator_for  # noqa: PLC0415
        from referencing import Registry  # noqa: PLC0415

        kind: Any = validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            message = f"outputSchema is no JSON Schema: {error.message}"
            raise TurnFailed("invalid_output_schema", _shorten(message)) from error
        self.schema = schema
        nothing: Registry[Any] = Registry()
        self._validator: Any = kind(schema, registry=nothing)

    def read(self, output: object) -> Any:
        """The output, with nulls where the schema wants them; raises `OutputMisfit`."""
        from jsonschema.exceptions import (  # noqa: PLC0415 - as above
            best_match,  # pyright: ignore[reportUnknownVariableType]
        )
        from referencing.exceptions import Unresolvable  # noqa: PLC0415 - as above

        if output is None:
            raise OutputMisfit("the turn ended without structured output")
        try:
            whole = _normalize(output, self.schema, self.schema)
            error = cast("Any", best_match)(self._validator.iter_errors(whole))
        except (Unresolvable, RecursionError) as problem:
            message = f"the schema cannot be applied: {type(problem).__name__}: {problem}"
            raise OutputMisfit(_shorten(message)) from problem
        if error is not None:
            raise OutputMisfit(_shorten(f"{error.json_path}: {error.message}"))
        return whole


def require_output_schema(
    options: dict[str, Any], manifest: CapabilityManifest
) -> OutputSchema | None:
    """The schema that a turn was given; raises `TurnFailed` where its agent cannot follow one."""
    schema = options.get(OUTPUT_SCHEMA)
    if schema is None:
        return None
    if manifest.structured_output == "no":
        message = f"{manifest.title} cannot answer by a schema"
        raise TurnFailed("structured_output_unsupported", message)
    if not isinstance(schema, dict):
        kind = type(schema).__name__
        message = f"expected a JSON Schema as an object in outputSchema, got {kind}"
        raise TurnFailed("invalid_output_schema", message)
    return OutputSchema(cast("Schema", schema))


def _shorten(text: str) -> str:
    if len(text) <= OUTPUT_PROBLEM_CHARACTERS:
        return text
    return f"{text[:OUTPUT_PROBLEM_CHARACTERS]}…"


def _normalize(value: object, schema: object, root: Schema) -> Any:
    """The value without the nulls of optional properties, and with those of required ones."""
    known = _resolve(schema, root)
    if isinstance(value, list):
        return [_normalize(each, known.get("items"), root) for each in cast("list[Any]", value)]
    fields, properties = object_at(value), object_at(known.get("properties")) or {}
    if fields is None:
        return value
    required = list_at(known.get("required")) or []
    present = {
        name: _normalize(each, properties.get(name), root)
        for name, each in fields.items()
        if each is not None or name not in properties or name in required
    }
    lacking = [name for name in required if name not in fields]
    return present | {name: None for name in lacking if _takes_null(properties.get(name))}


def _takes_null(schema: object) -> bool:
    part = object_at(schema) or {}
    kinds, choices = part.get("type"), list_at(part.get("anyOf")) or []
    return kinds == "null" or "null" in (list_at(kinds) or ()) or any(map(_takes_null, choices))


def _resolve(schema: object, root: Schema) -> Schema:
    """A schema, or what it refers to in its own document."""
    known = object_at(schema) or {}
    name = (text_at(known, "$ref") or "").removeprefix("#/$defs/")
    return object_at((object_at(root.get("$defs")) or {}).get(name)) or known


_UNUSED: Final = frozenset({"$schema", "$id", "default", "examples", "title"})
"""What a strict schema has no use for."""

_CHOICES: Final = ("anyOf", "oneOf", "allOf")
_NULL: Final = {"type": "null"}


def to_strict_schema(schema: Schema) -> Schema:
    """The schema as OpenAI's strict mode takes it: every property is required, and one that was
    optional may be null. What strict mode has no form for, such as any JSON, is left out where it
    is optional.
    """
    strict = {name: value for name, value in schema.items() if name not in _UNUSED}
    for name in ("$defs", "properties"):
        parts = object_at(schema.get(name))
        if parts is not None:
            strict[name] = {key: _to_strict_part(part) for key, part in parts.items()}
    for name in _CHOICES:
        choices = list_at(schema.get(name))
        if choices is not None:
            strict[name] = [_to_strict_part(each) for each in choices]
    words = list_at(schema.get("enum"))
    if words and "type" not in schema and all(isinstance(word, str) for word in words):
        strict["type"] = "string"
    if object_at(schema.get("items")) is not None:
        strict["items"] = _to_strict_part(schema["items"])
    if object_at(schema.get("properties")) is not None:
        strict |= _close_object(schema, strict["properties"])
    return strict


def _to_strict_part(part: object) -> Any:
    fields = object_at(part)
    return part if fields is None else to_strict_schema(fields)


def _close_object(schema: Schema, properties: dict[str, Any]) -> Schema:
    required = list_at(schema.get("required")) or []
    kept = {
        name: part if name in required else _allow_null(part)
        for name, part in properties.items()
        if name in required or not _is_open(part)
    }
    return {"properties": kept, "required": list(kept), "additionalProperties": False}


def _is_open(part: object) -> bool:
    """Whether a strict schema cannot say what this is."""
    fields = object_at(part)
    if fields is None:
        return True
    choices = [each for name in _CHOICES for each in list_at(fields.get(name)) or ()]
    if any(map(_is_open, choices)):
        return True
    if fields.get("type") == "object":
        return "properties" not in fields
    if fields.get("type") == "array":
        return _is_open(fields.get("items"))
    return not choices and not fields.keys() & {"type", "enum", "const", "$ref"}


def _allow_null(part: Schema) -> Schema:
    choices, kind = list_at(part.get("anyOf")), part.get("type")
    kinds = [kind] if isinstance(kind, str) else list_at(kind)
    if kinds is not None and "enum" not in part:
        return {**part, "type": list(dict.fromkeys([*kinds, "null"]))}
    if choices is None:
        return {"anyOf": [part, _NULL]}
    return part if _NULL in choices else {**part, "anyOf": [*choices, _NULL]}


class InvalidOutput(Exception):
    """A model that gave no output that fits, however often the library asked it to."""


OUTPUT_TOOL: Final = "final_result"
"""What a model of pydantic-ai calls to hand over its output."""


def make_pydantic_output(schema: Schema) -> Any:
    """A schema as an output type of pydantic-ai: a tool that the model must call in the end. Output
    that does not fit is refused with the reason, and the library has the model try again.
    """
    from pydantic_ai import StructuredDict, ToolOutput  # noqa: PLC0415 - an extra
    from pydantic_core import core_schema  # noqa: PLC0415 - as above

    wanted = OutputSchema(schema)
    shown: Any = StructuredDict(dict(schema))

    class TurnOutput(dict[str, Any]):
        __is_model_like__ = True

        @classmethod
        def __get_pydantic_core_schema__(cls, source_type: Any, handler: Any) -> Any:
            del source_type, handler
            return core_schema.no_info_after_validator_function(
                wanted.read, core_schema.dict_schema(core_schema.str_schema())
            )

        @classmethod
        def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> Any:
            return shown.__get_pydantic_json_schema__(core, handler)

    return ToolOutput(TurnOutput, name=OUTPUT_TOOL, strict=False)


def is_output_failure(error: Exception, response: "ModelResponse | None") -> bool:
    """Whether a run that was asked for output failed at it: its model's last answer was that output
    or prose, and no call of another tool.
    """
    from pydantic_ai import UnexpectedModelBehavior  # noqa: PLC0415 - an extra

    calls = [] if response is None else response.tool_calls
    return type(error) is UnexpectedModelBehavior and all(
        call.tool_name == OUTPUT_TOOL for call in calls
    )
