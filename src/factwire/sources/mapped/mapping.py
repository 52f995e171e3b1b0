"""`Mapping`: a mapping file, read and checked as a whole before the first item is."""

import re
import tomllib
from typing import Any, Final, Literal, cast

import msgspec

from factwire.runtime.configuration import Problem
from factwire.sources.framing import Framing
from factwire.sources.mapped.buckets import Bucket, bucket_of, buckets_by_type
from factwire.sources.mapped.inputs import Inputs, read_inputs
from factwire.sources.mapped.limits import FILE_BYTES, RULES
from factwire.sources.mapped.paths import Value
from factwire.sources.mapped.problems import MappingError, Problems
from factwire.sources.mapped.rules import Rule, read_rule
from factwire.sources.mapped.times import UNITS
from factwire.sources.mapped.values import ValueReader, nothing

VERSION: Final = 1
"""The version of mapping files that is read."""

_KEYS: Final = ("framing", "mapping", "name", "on", "stdin", "time", "title", "type", "versions")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_FRAMINGS: Final = ("lines", "events")


class Mapping(msgspec.Struct, frozen=True, kw_only=True):
    """What a mapping file says. `by_type` has the rules for each type that it names, `always` those
    that name none; `inputs` is what the program is told where it is run.
    """

    name: str
    title: str
    versions: str
    framing: Framing
    type: Value
    time: Value | None
    unit: str
    rules: tuple[Rule, ...]
    by_type: dict[str, Bucket]
    always: Bucket
    inputs: Inputs = Inputs()


def read_mapping(data: bytes, where: str = "mapping") -> Mapping:
    """The mapping in a file; raises `MappingError` with everything that is wrong with it."""
    table = _parsed(data, where)
    problems = Problems(where)
    problems.unknown_keys("", table, _KEYS)
    _check_version(table, problems)
    name = _name(table, problems)
    rules = _rules(table, problems)
    time, unit = _time(table, problems)
    mapping = Mapping(
        name=name,
        title=_text(table, "title", name, problems),
        versions=_text(table, "versions", "nothing in particular", problems),
        framing=_framing(table, problems),
        type=_type(table, rules, problems),
        time=time,
        unit=unit,
        rules=rules,
        by_type=buckets_by_type(rules),
        always=bucket_of(rule for rule in rules if not rule.types),
        inputs=read_inputs(table, problems),
    )
    problems.raise_any()
    return mapping


def _parsed(data: bytes, where: str) -> dict[str, Any]:
    try:
        if len(data) > FILE_BYTES:
            raise _unreadable(where, f"at most {FILE_BYTES} bytes", f"{len(data)}")
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise _unreadable(where, "text in UTF-8", f"byte {error.start} that is not") from error
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(where, "TOML", f"an error in it: {error}") from error
    except RecursionError as error:
        raise _unreadable(where, "TOML", "tables too deep to be read") from error


def _unreadable(where: str, expected: str, got: str) -> MappingError:
    return MappingError((Problem(code="unreadable", where=where, expected=expected, got=got),))


def _check_version(table: dict[str, Any], problems: Problems) -> None:
    given, expected = table.get("mapping"), f"{VERSION}, the version of the format"
    if given is None:
        problems.missing("mapping", expected)
    elif type(given) is not int or given != VERSION:
        problems.wrong_value("mapping", expected, given)


def _name(table: dict[str, Any], problems: Problems) -> str:
    name = table.get("name")
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    if name is None:
        problems.missing("name", "a name for the source")
    else:
        problems.wrong_value("name", "small letters, digits and dashes", name)
    return "unnamed"


def _text(table: dict[str, Any], key: str, default: str, problems: Problems) -> str:
    value = table.get(key, default)
    if isinstance(value, str):
        return value
    problems.wrong_type(key, "text", value)
    return default


def _framing(table: dict[str, Any], problems: Problems) -> Literal["lines", "events"]:
    value = table.get("framing", "lines")
    if value not in _FRAMINGS:
        problems.wrong_value("framing", "lines or events", value)
    return "events" if value == "events" else "lines"


def _type(table: dict[str, Any], rules: tuple[Rule, ...], problems: Problems) -> Value:
    if "type" in table:
        return ValueReader(problems).read(table["type"], "type")
    if any(rule.types for rule in rules):
        problems.missing("type", "where the type of an item stands, since rules ask for it")
    return nothing


def _time(table: dict[str, Any], problems: Problems) -> tuple[Value | None, str]:
    if "time" not in table:
        return None, "iso"
    reader = ValueReader(problems)
    given = reader.table(table["time"], "time")
    problems.unknown_keys("time", given, ("unit", "value"))
    unit = given.get("unit", "iso")
    if not isinstance(unit, str) or unit not in UNITS:
        problems.wrong_value("time.unit", "one of " + ", ".join(UNITS), unit)
        unit = "iso"
    if "value" not in given:
        problems.missing("time.value", "where the time of an item stands")
        return None, unit
    return reader.read(given["value"], "time.value"), unit


def _rules(table: dict[str, Any], problems: Problems) -> tuple[Rule, ...]:
    given = table.get("on")
    rows = cast("list[Any]", given) if isinstance(given, list) else []
    if not rows:
        problems.missing("on", "at least one rule, a table [[on]]")
    if len(rows) > RULES:
        problems.add("wrong_value", "on", f"at most {RULES} rules", f"{len(rows)}")
        return ()
    read = [read_rule(row, f"on[{at}]", problems) for at, row in enumerate(rows, 1)]
    return tuple(rule for rule in read if rule is not None)
