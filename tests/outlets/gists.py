"""What has to survive a way through another protocol and back, and nothing else.

For each speaker, in order: what was said, which tools were called and how that ended, what was
asked and decided; and how each turn ended. Ids of messages and the cuts between pieces are not part
of it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from factwire.facts import Fact, Fixture, read_fact
from factwire.outlets import find_outlet
from factwire.outlets.outlet import frame_item
from factwire.outlets.protocol_writer import APPROVALS, UNNAMED_TOOL, failure_of, result_of
from factwire.sources import convert_recording, find_source

CLOSERS = ("action.cancelled", "action.canceled", "action.expired")
ENDS = {"turn.completed": "completed", "turn.failed": "failed", "turn.canceled": "canceled"}


class Gist:
    def __init__(self, facts: Iterable[Fact]) -> None:
        self.lanes: dict[str | None, list[list[Any]]] = {None: []}
        self.texts: dict[Any, str] = {}
        self.ended: dict[Any, int] = {}
        self.calls: dict[str, list[Any]] = {}
        self.open_actions: dict[str, str | None] = {}
        self.denied: set[str | None] = set()
        self.is_open = False
        for fact in facts:
            self.take(fact)

    def take(self, fact: Fact) -> None:
        handle = getattr(self, "on_" + (fact.event_class or "").replace(".", "_"), None)
        if handle is not None:
            handle(fact)
        elif fact.event_class in ENDS and fact.subagent_id is None:
            self.end(fact)
        elif fact.event_class in CLOSERS:
            self.close_action(fact)

    def lane(self, fact: Fact) -> list[list[Any]]:
        return self.lanes.setdefault(fact.subagent_id, [])

    def say(self, fact: Fact, piece: str) -> None:
        lane = self.lane(fact)
        if not lane or lane[-1][0] != "text":
            lane.append(["text", []])
        lane[-1][1].append((fact.message_id, self.text_of(fact), piece))

    def text_of(self, fact: Fact) -> tuple[Any, ...]:
        """Which text of a message: one that is said after the other has ended is another."""
        key = (fact.subagent_id, fact.message_id, fact.part_id)
        return (*key, self.ended.get(key, 0))

    def unsay(self, message_ids: Callable[[Any], bool]) -> None:
        for entry in (each for lane in self.lanes.values() for each in lane if each[0] == "text"):
            entry[1] = [piece for piece in entry[1] if not message_ids(piece)]

    def on_turn_started(self, fact: Fact) -> None:
        self.is_open = self.is_open or fact.subagent_id is None

    def on_model_delta(self, fact: Fact) -> None:
        key = (fact.subagent_id, fact.message_id, fact.part_id)
        self.texts[key] = self.texts.get(key, "") + fact.payload["delta"]
        self.say(fact, fact.payload["delta"])

    def on_model_completed(self, fact: Fact) -> None:
        key = (fact.subagent_id, fact.message_id, fact.part_id)
        start = self.texts.pop(key, "")
        whole = fact.payload.get("text", start)
        if not whole.startswith(start):
            text = self.text_of(fact)
            self.unsay(lambda piece: piece[1] == text)
            start = ""
        if whole[len(start) :]:
            self.say(fact, whole[len(start) :])
        self.ended[key] = self.ended.get(key, 0) + 1

    def on_messages_snapshot(self, fact: Fact) -> None:
        ids: list[str] = fact.payload.get("retractedMessageIds") or []
        self.unsay(lambda piece: piece[0] in ids)
        self.texts = {key: text for key, text in self.texts.items() if key[1] not in ids}

    def on_tool_started(self, fact: Fact) -> None:
        name = fact.payload.get("toolName") or UNNAMED_TOOL
        entry = ["tool", fact.tool_call_id, name, fact.payload.get("args"), None]
        self.calls[fact.tool_call_id or ""] = entry
        self.lane(fact).append(entry)

    def on_tool_args(self, fact: Fact) -> None:
        entry = self.calls[fact.tool_call_id or ""]
        entry[2] = fact.payload.get("toolName") or entry[2]
        entry[3] = fact.payload.get("args", entry[3])

    def on_tool_result(self, fact: Fact) -> None:
        self.calls[fact.tool_call_id or ""][4] = ["result", result_of(fact)]

    def on_tool_failed(self, fact: Fact) -> None:
        denied = fact.tool_call_id in self.denied
        self.calls[fact.tool_call_id or ""][4] = ["denied"] if denied else [*failure_of(fact)]

    def on_action_required(self, fact: Fact) -> None:
        self.open_actions[fact.action_id or ""] = fact.tool_call_id
        self.lane(fact).append(["asked", fact.action_id, fact.tool_call_id])

    def on_action_resolved(self, fact: Fact) -> None:
        decision = fact.payload.get("decision")
        plain = APPROVALS.get(decision or "")
        call = self.open_actions.pop(fact.action_id or "", None)
        if plain is False:
            self.denied.add(call)
        self.lane(fact).append(["decided", fact.action_id, decision if plain is None else plain])

    def close_action(self, fact: Fact) -> None:
        self.open_actions.pop(fact.action_id or "", None)
        self.lane(fact).append(["closed", fact.action_id])

    def on_subagent_completed(self, fact: Fact) -> None:
        self.lane(fact).append(["done"])

    def on_subagent_failed(self, fact: Fact) -> None:
        self.lane(fact).append(["failed"])

    def end(self, fact: Fact) -> None:
        self.is_open = False
        how = ENDS[fact.event_class or ""]
        category = [fact.payload.get("failureCategory")] if how == "failed" else []
        self.lanes[None].append(["end", how, *category])

    def lines(self) -> dict[str | None, list[list[Any]]]:
        """The gist itself: texts joined, and what was taken back left out."""
        return {who: texts for who, lane in self.lanes.items() if (texts := _join_texts(lane))}


def _join_texts(lane: list[list[Any]]) -> list[list[Any]]:
    joined: list[list[Any]] = []
    for entry in lane:
        if entry[0] != "text":
            joined.append(entry)
            continue
        text = "".join(piece for *_, piece in entry[1])
        if text and joined and joined[-1][0] == "text":
            joined[-1] = ["text", joined[-1][1] + text]
        elif text:
            joined.append(["text", text])
    return joined


def encode_facts(facts: Iterable[Fact], name: str) -> list[dict[str, Any]]:
    """Everything that a client of an outlet is told."""
    outlet = find_outlet(name).make()
    items = [item for fact in facts for item in outlet.take(fact)]
    return [*items, *outlet.finish()]


def convert_back(items: Sequence[dict[str, Any]], name: str) -> list[Fact]:
    """The facts that our own source makes of what a client was told."""
    lines = b"".join(frame_item(item, "events") for item in items).splitlines(keepends=True)
    source = find_source(find_outlet(name).source)
    return list(convert_recording(source, lines, thread_id="back"))


def facts_in_order(fixture: Fixture) -> list[Fact]:
    """The facts of a fixture as a journal would have them: once each, in order."""
    facts = list({fact.id: fact for fact in map(read_fact, fixture.events)}.values())
    if len({fact.thread_id for fact in facts}) == 1:
        facts.sort(key=lambda fact: fact.sequence or 0)
    return facts
