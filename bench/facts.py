"""Intake of facts against pydantic and against bare msgspec.

The measured path is everything that a fact goes through on its way in: decode, every rule of its
class, lifecycle, redaction across deltas, the spill decision, encode. Pydantic decodes, validates
and encodes a union discriminated by the class: once with types alone, and once with rules as its
users write them, validators that ask for ids, look for secrets and follow what is open. Those rules
are fewer than ours: a dozen shapes of secrets, none of them across deltas.
"""

import re

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, Self

import msgspec
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from bench.measure import Row, rates
from bench.workload import facts
from factwire.facts import RUNTIME_CLASSES, Fact, Intake

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


_SECRET_KEY = re.compile(r"api[_-]?key|authorization|password|secret|token$", re.IGNORECASE)
_SECRET_VALUE = re.compile(
    r"sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{36}|AKIA[0-9A-Z]{16}|AIza[\w-]{35}"
    r"|xox[abp]-[\w-]{10,}|sk_live_\w{20,}|npm_\w{36}|hf_\w{30,}|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}|://[^\s/:@]+:[^\s/@]+@"
)


class _Ruled(_Base):
    """The same with rules, the way that they are written with pydantic."""

    needed: ClassVar[tuple[str, ...]] = ()
    active: ClassVar[set[str]] = set()

    @model_validator(mode="after")
    def _rules(self) -> Self:
        if any(getattr(self, name) is None for name in self.needed):
            raise ValueError("an id is missing")
        payload: Any = self.__dict__["payload"]
        _no_secret(payload if isinstance(payload, dict) else payload.__dict__)
        event_class = self.__dict__["eventClass"]
        if event_class == "tool.started":
            self.active.add(str(self.toolCallId))
        elif event_class in ("tool.result", "tool.failed"):
            if self.toolCallId not in self.active:
                raise ValueError("a result without a start")
            self.active.discard(self.toolCallId)
        return self


def _no_secret(value: object) -> None:
    if isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            if item and not isinstance(item, int) and _SECRET_KEY.search(key):  # pyright: ignore[reportUnknownArgumentType]
                raise ValueError("a key names a secret")
            _no_secret(item)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            _no_secret(item)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, str) and _SECRET_VALUE.search(value):
        raise ValueError("a value is a secret")


_NEEDED = {"tool": ("toolCallId",), "action": ("actionId",), "artifact": ("artifactId",)}


def _models(base: type[_Base]) -> TypeAdapter[_Base]:
    """One model per family, told apart by the class; text payloads are typed, others open."""
    families: dict[str, list[str]] = {}
    for name in RUNTIME_CLASSES:
        families.setdefault(name.partition(".")[0], []).append(name)
    models: list[type[_Base]] = []
    for family, names in families.items():
        payload = _Text if family in ("model", "reasoning") else dict[str, Any]
        body: dict[str, Any] = {
            "__annotations__": {"eventClass": Literal[tuple(names)], "payload": payload},
            "__module__": __name__,
        }
        if issubclass(base, _Ruled):
            body["needed"] = _NEEDED.get(family, ())
            body["__annotations__"]["needed"] = ClassVar[tuple[str, ...]]
        models.append(type(family, (base,), body))
    union: Any = models[0]
    for model in models[1:]:
        union = union | model
    return TypeAdapter(Annotated[union, Field(discriminator="eventClass")])


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


def rows() -> list[Row]:
    """Facts per second on one core."""
    lines = facts(_COUNT)
    typed, ruled = _models(_Base), _models(_Ruled)
    contenders: dict[str, Callable[[], int]] = {
        "factwire": lambda: _factwire(lines),
        "pydantic with rules": lambda: _pydantic(ruled, lines),
        "pydantic, types alone": lambda: _pydantic(typed, lines),
        "bare msgspec, types alone": lambda: _bare_msgspec(lines),
    }
    seen = rates(contenders)
    mean = sum(map(len, lines)) / len(lines)
    ours = seen.pop("factwire")
    goals = {"pydantic with rules": "≥ 3×"}
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
