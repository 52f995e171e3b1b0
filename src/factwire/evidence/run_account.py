"""A run account: what one run did, turn by turn, as items to compare.

It is made from facts alone: from the state that they come to, and from a ledger of what a state
does not keep for each turn (outcome, models, cost, files, time). What is new in every run (ids,
times, and texts that hold them) is hidden and never a difference. Facts of threads that are no
part of the run are left out.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from math import isfinite
from operator import attrgetter
from typing import Any, Final, cast

import msgspec

from factwire.evidence.limits import COMPARED_WORDS, FLAT_DEPTH, VALUE_CHARACTERS
from factwire.evidence.run_aspects import ASPECT_LISTERS, name_teammate
from factwire.evidence.run_comparison import ASPECTS, Aspect, Figures, RunSide, TurnSide
from factwire.facts import CORRELATION_IDS, Fact, entity_of
from factwire.facts.classes.class_tables import TURN_TERMINALS
from factwire.facts.classes.payloads import (
    CostPayload,
    FileChangePayload,
    ModelRequestPayload,
    TurnEndPayload,
)
from factwire.facts.fact import ATTRIBUTES
from factwire.facts.open_work import LastIds, OpenWork
from factwire.projection import Projection, ProjectionState, order_facts
from factwire.projection.payload_fields import outcome_of, read_payload, subagent_of, turn_of

HIDDEN_ID: Final = "<id>"
HIDDEN_MOMENT: Final = "<time>"

_NAMES: Final = frozenset({"agentId", "agent_id", "runtimeId", "runtime_id", "modelId", "model_id"})
_MINTED: Final = tuple(ATTRIBUTES[name] for name in CORRELATION_IDS if name not in _NAMES)
_ids_of: Final = attrgetter("id", *_MINTED)
_ID_KEYS: Final = ("Id", "_id")

_FORMS: Final = re.compile(
    r"(?P<time>\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)"
    r"|(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])"
    r"|(?<![0-9A-Za-z])[0-7](?:[0-9A-HJKMNP-TV-Z]{25}|[0-9a-hjkmnp-tv-z]{25})(?![0-9A-Za-z])"
)
_WORD: Final = re.compile(r"[\w-]+")
_NO_WORD: Final = re.compile(r"[\d_:-]")
_DIGIT: Final = re.compile(r"\d")
_SHORTEST: Final = 4


class VolatileValues:
    """The ids of one run, gathered fact by fact, and texts without them."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def note(self, fact: Fact) -> None:
        """Take in the ids of a fact."""
        self._ids.update(cast("Iterable[str]", _ids_of(fact)))
        for name, value in fact.payload.items():
            if name.endswith(_ID_KEYS) and isinstance(value, str) and name not in _NAMES:
                self._ids.add(value)

    def _is_id(self, text: str, sign: re.Pattern[str]) -> bool:
        """Whether a text is an id of this run and, by this sign, could be nothing else."""
        if len(text) < _SHORTEST or text not in self._ids or "\n" in text:
            return False
        return sign.search(text) is not None

    def hide(self, value: Any) -> Any:
        """The value without anything that is new in every run."""
        if isinstance(value, str):
            return self._hide_in_text(value)
        if isinstance(value, list | tuple):
            return [self.hide(each) for each in cast("Iterable[Any]", value)]
        if isinstance(value, dict):
            table = cast("dict[str, Any]", value)
            return {name: self.hide(each) for name, each in table.items()}
        return value

    def _hide_in_text(self, text: str) -> str:
        if self._is_id(text, _NO_WORD):
            return HIDDEN_ID
        formed = _FORMS.sub(lambda found: HIDDEN_MOMENT if found["time"] else HIDDEN_ID, text)
        return _WORD.sub(self._hide_word, formed)

    def _hide_word(self, found: re.Match[str]) -> str:
        return HIDDEN_ID if self._is_id(found[0], _DIGIT) else found[0]


_WORDS: Final = re.compile(r"\w+")
_ASKED: Final = ("args", "command", "paths", "prompt", "objective")
"""Fields that say what was to be done, and not what came of it."""

_CHARACTERS_OF_WORDS: Final = 40 * COMPARED_WORDS


class ComparedItem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing. Two with the same `key` are the same; with the same `name` the same was asked;
    with the same `about` they are at least of one subject.
    """

    subject: str
    about: str
    fields: dict[str, Any]
    hidden: dict[str, Any]
    key: str
    name: str
    words: frozenset[str]


def build_item(volatile: VolatileValues, subject: str, fields: dict[str, Any]) -> ComparedItem:
    """The item of a subject; fields of which nothing is known are left out."""
    flat = dict(
        _flatten_table("", {name: value for name, value in fields.items() if _has_value(value)}, 0)
    )
    hidden = volatile.hide(flat)
    about = volatile.hide(subject)
    text = msgspec.json.encode(hidden, order="sorted").decode()
    inputs = {name: value for name, value in hidden.items() if name.startswith(_ASKED)}
    return ComparedItem(
        subject=subject,
        about=about,
        fields=flat,
        hidden=hidden,
        key=f"{about}\n{text}",
        name=f"{about}\n{msgspec.json.encode(inputs, order='sorted').decode()}",
        words=split_words(text),
    )


def split_words(text: str) -> frozenset[str]:
    """The first words of a text."""
    return frozenset(_WORDS.findall(text[:_CHARACTERS_OF_WORDS].lower())[:COMPARED_WORDS])


def word_similarity(a: frozenset[str], b: frozenset[str]) -> float:
    """The share of common words, from 0 to 1."""
    return len(a & b) / len(a | b) if a or b else 1.0


def _has_value(value: Any) -> bool:
    return value is not None and value not in ("", [])


def _flatten_table(path: str, table: dict[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
    """Tables taken apart into fields such as `args.path`; lists stay whole."""
    for name, value in table.items():
        place = f"{path}.{name}" if path else name
        if isinstance(value, dict) and value and depth < FLAT_DEPTH:
            yield from _flatten_table(place, cast("dict[str, Any]", value), depth + 1)
        else:
            yield place, value


_MODELS: Final = (
    *("model.requested", "model.completed", "model.failed"),
    *("routing.decided", "routing.fallback.applied", "routing.single_candidate"),
)
_BEGIN_CLASSES: Final = ("turn.submitted", "turn.started", "run.started")
_END_CLASSES: Final = (*TURN_TERMINALS, "run.finished", "run.failed")


class TouchedFile(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """What a turn did to one file."""

    change: str | None = None
    changes: int = 0
    reads: int = 0
    added_lines: int = 0
    removed_lines: int = 0
    diff: str | None = None


class TurnLedger(msgspec.Struct, kw_only=True):
    """One turn; `turn_id` is None for what happened beside all turns."""

    turn_id: str | None
    is_turn: bool = False
    is_beside: bool = False
    subagent_id: str | None = None
    outcome: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    models: dict[str, None] = msgspec.field(default_factory=dict[str, None])
    files: dict[str, TouchedFile] = msgspec.field(default_factory=dict[str, TouchedFile])
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cost_usd: float = 0.0
    first_at: str | None = None
    last_at: str | None = None

    def duration_ms(self) -> float | None:
        """Between its first and its last fact, where both say when they were made."""
        return milliseconds_between(self.first_at, self.last_at)


def _record_start(turn: TurnLedger, fact: Fact) -> None:
    is_beside = entity_of(fact) is not None
    turn.is_beside = is_beside and (turn.is_beside or not turn.is_turn)
    turn.is_turn = True
    if turn.is_beside:
        turn.subagent_id = subagent_of(fact) or turn.subagent_id


def _record_end(turn: TurnLedger, fact: Fact) -> None:
    if entity_of(fact) is not None and turn.is_turn and not turn.is_beside:
        return
    payload = read_payload(fact, TurnEndPayload)
    turn.is_turn = True
    turn.outcome = {
        "status": outcome_of(fact),
        "failureCategory": payload.failure_category,
        "message": payload.message,
        "reason": payload.reason,
    }


def _record_model(turn: TurnLedger, fact: Fact) -> None:
    model = read_payload(fact, ModelRequestPayload).model
    if model:
        turn.models[model] = None


def _record_cost(turn: TurnLedger, fact: Fact) -> None:
    payload = read_payload(fact, CostPayload)
    tokens_in, tokens_out = max(0, payload.input_tokens or 0), max(0, payload.output_tokens or 0)
    turn.input_tokens += tokens_in
    turn.output_tokens += tokens_out
    turn.total_tokens += max(0, payload.total_tokens or 0) or tokens_in + tokens_out
    cost = turn.cost_usd + float(payload.total_cost_usd or 0)
    turn.cost_usd = cost if isfinite(cost) else turn.cost_usd
    _record_model(turn, fact)


def _record_file(turn: TurnLedger, fact: Fact) -> None:
    payload = read_payload(fact, FileChangePayload)
    if payload.path is None:
        return
    file = turn.files.setdefault(payload.path, TouchedFile())
    if fact.event_class == "file.read":
        file.reads += 1
        return
    file.changes += 1
    file.added_lines += payload.added_lines or 0
    file.removed_lines += payload.removed_lines or 0
    file.change, file.diff = payload.change or file.change, payload.diff or file.diff


_RECORDERS: Final[dict[str, Callable[[TurnLedger, Fact], None]]] = {
    **dict.fromkeys(_BEGIN_CLASSES, _record_start),
    **dict.fromkeys(_END_CLASSES, _record_end),
    **dict.fromkeys(_MODELS, _record_model),
    "cost.recorded": _record_cost,
    "file.read": _record_file,
    "file.changed": _record_file,
}


class RunLedger:
    """Gathers facts of one run; `turns` tells them when all are there."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._placed_facts: list[tuple[int, Fact]] = []
        self._times: dict[str | None, tuple[int, str, str]] = {}
        self._place = 0

    def note(self, fact: Fact, *, main: bool) -> None:
        """Take in a fact; on the `main` thread its sequence says where it belongs."""
        if fact.id in self._seen:
            return
        self._seen.add(fact.id)
        if main and fact.sequence is not None:
            self._place = fact.sequence
        turn, at = turn_of(fact), fact.created_at
        place, first, last = self._times.get(turn, (self._place, at, at))
        self._times[turn] = (min(place, self._place), min(first, at), max(last, at))
        if fact.event_class in _RECORDERS:
            self._placed_facts.append((self._place, fact))

    def turns(self) -> dict[str | None, TurnLedger]:
        """Every turn that a fact names, in the order of their first facts."""
        by_place = sorted(self._times.items(), key=lambda each: each[1][0])
        found = {
            turn: TurnLedger(turn_id=turn, first_at=first, last_at=last)
            for turn, (_, first, last) in by_place
        }
        found.setdefault(None, TurnLedger(turn_id=None))
        work = OpenWork(LastIds(len(found)))
        for _, fact in sorted(self._placed_facts, key=lambda each: each[0]):
            if work.follow_turn(fact) and entity_of(fact) is not None:
                fact = msgspec.structs.replace(fact, runtime_entity="agent_turn")  # noqa: PLW2901
            _RECORDERS[fact.event_class or ""](found[turn_of(fact)], fact)
        return found


def milliseconds_between(first: str | None, last: str | None) -> float | None:
    """The time between two moments as facts state them; None where one cannot be read."""
    if first is None or last is None:
        return None
    try:
        passed = datetime.fromisoformat(last) - datetime.fromisoformat(first)
    except (ValueError, TypeError):
        return None
    return passed.total_seconds() * 1_000


Items = dict[Aspect, list[ComparedItem]]


class AccountTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn; turns with the same `prompt_key` were asked the same, by the same."""

    side: TurnSide
    items: Items
    prompt_key: str
    key: str


class RunAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A run: its turns in order, and what is beside them."""

    side: RunSide
    turns: list[AccountTurn]
    outside: Items


class AccountBuilder:
    """Takes the facts of one run, one by one, as `order_facts` orders them. Facts of a journal come
    in order, with nothing missing but what was removed on purpose: they are `kept`.
    """

    def __init__(self, thread_id: str | None = None, *, kept: bool = False) -> None:
        self._projection = Projection(thread_id)
        self._take = self._projection.replay if kept else self._projection.apply_ordered
        self._ledger = RunLedger()
        self._volatile = VolatileValues()
        self._threads: set[str] = set()
        self._facts = 0

    def take(self, fact: Fact) -> None:
        self._take(fact)
        main = fact.thread_id in (None, self._projection.state.thread_id)
        if main or self._is_child(fact):
            self._ledger.note(fact, main=main)
            self._volatile.note(fact)
            self._facts += 1

    def build(self) -> RunAccount:
        """What the run came to. Nothing more comes, so what waits for missing facts is shown."""
        self._projection.close()
        state, ledger = self._projection.state, self._ledger.turns()
        items = self._build_items(state, ledger)
        turns = [
            self._build_turn(state, ledger[each], items[each], number)
            for number, each in _number_turns(ledger)
        ]
        everyone = list(ledger.values())
        side = RunSide(
            thread_id=state.thread_id,
            title=state.title,
            facts=self._facts,
            turns=len(turns),
            hydration=state.hydration.status,
            figures=_run_figures(everyone, len(state.tools)),
        )
        return RunAccount(side=side, turns=turns, outside=self._find_outside(ledger, items))

    def _is_child(self, fact: Fact) -> bool:
        """Whether a fact is of a thread below this one, by what it and earlier facts say."""
        thread, state = fact.thread_id or "", self._projection.state
        if thread not in self._threads:
            below = {each.thread_id for each in state.subagents.threads.values()}
            parent = fact.parent_thread_id
            if parent != state.thread_id and parent not in self._threads and thread not in below:
                return False
            self._threads.add(thread)
        return True

    def _build_items(
        self, state: ProjectionState, ledger: dict[str | None, TurnLedger]
    ) -> dict[str | None, Items]:
        found: dict[str | None, Items] = defaultdict(lambda: {each: [] for each in ASPECTS})
        for aspect, rows in ASPECT_LISTERS.items():
            for turn, subject, fields in rows(state):
                key = turn if turn in ledger else None
                found[key][aspect].append(build_item(self._volatile, subject, fields))
        for key, turn in ledger.items():
            self._add_ledger(found[key], turn)
        return found

    def _add_ledger(self, items: Items, turn: TurnLedger) -> None:
        def add(aspect: Aspect, subject: str, fields: dict[str, object]) -> None:
            if any(fields.values()):
                items[aspect].append(build_item(self._volatile, subject, fields))

        if turn.is_turn:
            add("outcome", "outcome", turn.outcome or {"status": "unfinished"})
        add("models", "models", {"used": list(turn.models)})
        for path, file in sorted(turn.files.items()):
            add("files", path, msgspec.to_builtins(file))
        figures = {
            "inputTokens": turn.input_tokens,
            "outputTokens": turn.output_tokens,
            "totalTokens": turn.total_tokens,
            "costUsd": round(turn.cost_usd, 9),
        }
        add("cost", "cost", {name: value or None for name, value in figures.items()})

    def _build_turn(
        self, state: ProjectionState, ledger: TurnLedger, items: Items, number: int
    ) -> AccountTurn:
        by = name_teammate(state, ledger.subagent_id)
        prompt = "\n".join(str(each.fields.get("text", "")) for each in items["prompt"])
        prompts = "\n".join(each.key for each in items["prompt"])
        return AccountTurn(
            side=TurnSide(
                number=number,
                turn_id=ledger.turn_id or "",
                prompt=prompt[:VALUE_CHARACTERS],
                figures=_turn_figures(ledger, len(items["tools"])),
                by=by,
            ),
            items=items,
            prompt_key=f"{self._volatile.hide(by or '')}\n{prompts}",
            key="\n".join(each.key for aspect in ASPECTS for each in items[aspect]),
        )

    def _find_outside(
        self, ledger: dict[str | None, TurnLedger], items: dict[str | None, Items]
    ) -> Items:
        """What belongs to no turn, or to one of which no fact says that it began or ended."""
        found: Items = {each: [] for each in ASPECTS}
        for key, turn in ledger.items():
            if not turn.is_turn:
                for aspect in ASPECTS:
                    found[aspect] += items[key][aspect]
        return found


def build_account(facts: Iterable[Fact], thread_id: str | None = None) -> RunAccount:
    """The account of a run's facts; without a thread, that of the first one without a parent."""
    accountant = AccountBuilder(thread_id)
    for fact in order_facts(facts, thread_id):
        accountant.take(fact)
    return accountant.build()


def _number_turns(ledger: dict[str | None, TurnLedger]) -> Iterable[tuple[int, str | None]]:
    return enumerate((key for key, turn in ledger.items() if turn.is_turn), 1)


def _turn_figures(turn: TurnLedger, tool_calls: int) -> Figures:
    return Figures(
        duration_ms=turn.duration_ms(),
        tool_calls=tool_calls,
        input_tokens=turn.input_tokens,
        output_tokens=turn.output_tokens,
        total_tokens=turn.total_tokens,
        cost_usd=round(turn.cost_usd, 9),
    )


def _run_figures(turns: list[TurnLedger], tool_calls: int) -> Figures:
    first = min((turn.first_at for turn in turns if turn.first_at), default=None)
    last = max((turn.last_at for turn in turns if turn.last_at), default=None)
    return Figures(
        duration_ms=milliseconds_between(first, last),
        tool_calls=tool_calls,
        input_tokens=sum(turn.input_tokens for turn in turns),
        output_tokens=sum(turn.output_tokens for turn in turns),
        total_tokens=sum(turn.total_tokens for turn in turns),
        cost_usd=round(sum(turn.cost_usd for turn in turns), 9),
    )
