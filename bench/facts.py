"""Intake of facts against pydantic and against bare msgspec.

The measured path is everything that a fact goes through on its way in: decode, every rule of its
class, lifecycle, redaction across deltas, the spill decision, encode. Pydantic decodes, validates
and encodes a union discriminated by the class: once with types alone, and once with the same rules.
Those work on facts, which are made ahead and cost pydantic nothing.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from bench.measure import Row, rates
from bench.workload import facts
from factwire.facts import (
    RUNTIME_CLASSES,
    Fact,
    Intake,
    LifecycleVerifier,
    Redactor,
    class_issues,
    decode_fact,
)

_COUNT = 20_000


class _Base(BaseModel):
    model_config = ConfigDict(extra="allow")

    id: str
    kind: str
    status: str
    title: str
    createdAt: str  # noqa: N815 - the wire name
    schemaVersion: str  # noqa: N815
    runtimeId: str  # noqa: N815
    sequence: int
    sessionId: str | None = None  # noqa: N815
    threadId: str | None = None  # noqa: N815
    runId: str | None = None  # noqa: N815
    turnId: str | None = None  # noqa: N815
    messageId: str | None = None  # noqa: N815
    partId: str | None = None  # noqa: N815
    taskId: str | None = None  # noqa: N815
    toolCallId: str | None = None  # noqa: N815
    actionId: str | None = None  # noqa: N815
    artifactId: str | None = None  # noqa: N815
    evidenceId: str | None = None  # noqa: N815


class _Text(BaseModel):
    model_config = ConfigDict(extra="allow")

    messageId: str | None = None  # noqa: N815
    partId: str | None = None  # noqa: N815
    delta: str | None = None
    text: str | None = None


def _models() -> TypeAdapter[_Base]:
    """One model per family, told apart by the class; text payloads are typed, others open."""
    families: dict[str, list[str]] = {}
    for name in RUNTIME_CLASSES:
        families.setdefault(name.partition(".")[0], []).append(name)
    models: list[type[_Base]] = []
    for family, names in families.items():
        payload = _Text if family in ("model", "reasoning") else dict[str, Any]
        fields = {"eventClass": Literal[tuple(names)], "payload": payload}
        models.append(type(family, (_Base,), {"__annotations__": fields, "__module__": __name__}))
    union: Any = models[0]
    for model in models[1:]:
        union = union | model
    told_apart: Any = Annotated[union, Field(discriminator="eventClass")]
    return TypeAdapter(told_apart)


def _factwire(lines: list[bytes]) -> int:
    intake = Intake()
    for line in lines:
        intake.feed(line)
    return len(lines)


def _bare_msgspec(lines: list[bytes]) -> int:
    decode, encode = msgspec.json.Decoder(Fact).decode, msgspec.json.Encoder().encode
    for line in lines:
        encode(decode(line))
    return len(lines)


def _pydantic(adapter: TypeAdapter[_Base], lines: list[bytes]) -> int:
    for line in lines:
        adapter.validate_json(line).model_dump_json(exclude_none=True)
    return len(lines)


def _pydantic_with_rules(
    adapter: TypeAdapter[_Base], lines: list[bytes], decoded: list[Fact]
) -> int:
    verifier, redactor = LifecycleVerifier(), Redactor()
    for line, fact in zip(lines, decoded, strict=True):
        model = adapter.validate_json(line)
        class_issues(fact)
        verifier.feed(fact)
        redactor.feed(fact)
        model.model_dump_json(exclude_none=True)
    return len(lines)


def rows() -> list[Row]:
    """Facts per second on one core."""
    lines = facts(_COUNT)
    decoded = [decode_fact(line) for line in lines]
    adapter = _models()
    contenders: dict[str, Callable[[], int]] = {
        "factwire": lambda: _factwire(lines),
        "pydantic, the same rules": lambda: _pydantic_with_rules(adapter, lines, decoded),
        "pydantic, types alone": lambda: _pydantic(adapter, lines),
        "bare msgspec, types alone": lambda: _bare_msgspec(lines),
    }
    seen = rates(contenders)
    mean = sum(map(len, lines)) / len(lines)
    ours = seen.pop("factwire")
    goals = {"pydantic, the same rules": "≥ 3×"}
    return [
        Row(
            name=f"intake, all rules on ({mean:.0f} bytes a fact)",
            value=ours,
            unit="facts/s",
            ratio=ours / rate,
            baseline=f"{name} ({rate:,.0f})",
            goal=goals.get(name, ""),
        )
        for name, rate in seen.items()
    ]
