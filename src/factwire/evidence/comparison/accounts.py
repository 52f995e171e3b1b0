"""An account: what one run did, turn by turn, as items to compare.

It is made from facts alone: from the state that they come to, and from a ledger of what a state
does not keep for each turn. Facts of threads that are no part of the run are left out.
"""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from factwire.evidence.comparison.aspects import FROM_STATE, teammate
from factwire.evidence.comparison.comparison import ASPECTS, Aspect, Figures, RunSide, TurnSide
from factwire.evidence.comparison.items import Item, item_of
from factwire.evidence.comparison.ledger import Ledger, TurnLedger, milliseconds
from factwire.evidence.comparison.limits import VALUE_CHARACTERS
from factwire.evidence.comparison.volatile import Volatile
from factwire.facts import Fact
from factwire.projection import Projection, ProjectionState

Items = dict[Aspect, list[Item]]


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn; turns with the same `prompt_key` were asked the same, by the same."""

    side: TurnSide
    items: Items
    prompt_key: str
    key: str


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A run: its turns in order, and what is beside them."""

    side: RunSide
    turns: list[Turn]
    outside: Items


class Accountant:
    """Takes the facts of one run, one by one. Facts of a journal come in order, with nothing
    missing but what was removed on purpose: they are `kept`.
    """

    def __init__(self, thread_id: str | None = None, *, kept: bool = False) -> None:
        self._projection = Projection(thread_id)
        self._take = self._projection.replay if kept else self._projection.apply
        self._ledger = Ledger()
        self._volatile = Volatile()
        self._threads: set[str] = set()
        self._facts = 0

    def take(self, fact: Fact) -> None:
        self._take(fact)
        main = fact.thread_id in (None, self._projection.state.thread_id)
        if main or self._is_child(fact):
            self._ledger.note(fact, main=main)
            self._volatile.note(fact)
            self._facts += 1

    def account(self) -> Account:
        """What the run came to."""
        state, ledger = self._projection.state, self._ledger.turns()
        items = self._items(state, ledger)
        turns = [
            self._turn(state, ledger[each], items[each], number) for number, each in _turns(ledger)
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
        return Account(side=side, turns=turns, outside=self._outside(ledger, items))

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

    def _items(
        self, state: ProjectionState, ledger: dict[str | None, TurnLedger]
    ) -> dict[str | None, Items]:
        found: dict[str | None, Items] = defaultdict(lambda: {each: [] for each in ASPECTS})
        for aspect, rows in FROM_STATE.items():
            for turn, subject, fields in rows(state):
                key = turn if turn in ledger else None
                found[key][aspect].append(item_of(self._volatile, subject, fields))
        for key, turn in ledger.items():
            self._add_ledger(found[key], turn)
        return found

    def _add_ledger(self, items: Items, turn: TurnLedger) -> None:
        def add(aspect: Aspect, subject: str, fields: dict[str, object]) -> None:
            if any(fields.values()):
                items[aspect].append(item_of(self._volatile, subject, fields))

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

    def _turn(self, state: ProjectionState, ledger: TurnLedger, items: Items, number: int) -> Turn:
        by = teammate(state, ledger.subagent_id)
        asked = "\n".join(str(each.fields.get("text", "")) for each in items["prompt"])
        prompts = "\n".join(each.key for each in items["prompt"])
        return Turn(
            side=TurnSide(
                number=number,
                turn_id=ledger.turn_id or "",
                prompt=asked[:VALUE_CHARACTERS],
                figures=_figures(ledger, len(items["tools"])),
                by=by,
            ),
            items=items,
            prompt_key=f"{self._volatile.hide(by or '')}\n{prompts}",
            key="\n".join(each.key for aspect in ASPECTS for each in items[aspect]),
        )

    def _outside(
        self, ledger: dict[str | None, TurnLedger], items: dict[str | None, Items]
    ) -> Items:
        """What belongs to no turn, or to one of which no fact says that it began or ended."""
        found: Items = {each: [] for each in ASPECTS}
        for key, turn in ledger.items():
            if not turn.is_turn:
                for aspect in ASPECTS:
                    found[aspect] += items[key][aspect]
        return found


def account_of(facts: Iterable[Fact], thread_id: str | None = None) -> Account:
    """The account of a run's facts; without a thread the first fact decides which one it is."""
    accountant = Accountant(thread_id)
    for fact in facts:
        accountant.take(fact)
    return accountant.account()


def _turns(ledger: dict[str | None, TurnLedger]) -> Iterable[tuple[int, str | None]]:
    return enumerate((key for key, turn in ledger.items() if turn.is_turn), 1)


def _figures(turn: TurnLedger, tool_calls: int) -> Figures:
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
        duration_ms=milliseconds(first, last),
        tool_calls=tool_calls,
        input_tokens=sum(turn.input_tokens for turn in turns),
        output_tokens=sum(turn.output_tokens for turn in turns),
        total_tokens=sum(turn.total_tokens for turn in turns),
        cost_usd=round(sum(turn.cost_usd for turn in turns), 9),
    )
