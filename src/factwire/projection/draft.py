"""`StateDraft`: the state while one fact is applied to it, with an index of what is where and what
is open.

Whatever a reducer changes goes through the draft, so that state and changes cannot differ: the
same call sets the value and records the operation. Absent values are not written, so setting one
to None removes it. The index follows from the state alone and is rebuilt when a projection is
restored.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeVar, cast

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.json_patch import WIRE_NAMES, escape_key, same, wire_spelling_of_field
from factwire.facts.outcomes import OPEN_STATUSES
from factwire.projection.changes import Operation
from factwire.projection.messages import (
    TEXT_PARTS,
    Message,
    Part,
    PartHandle,
    TextPart,
    kind_of_part,
)
from factwire.projection.payload_fields import FieldChecks
from factwire.projection.reasoning import Plan
from factwire.projection.state import ProjectionState
from factwire.projection.subagents import SubagentThread
from factwire.projection.tasks import Job, ProjectedTask
from factwire.projection.timeline import TimelineEntry
from factwire.projection.tools import is_open
from factwire.projection.views import Text

INDEXED_ROWS: Final = 32
"""Rows of a list that are searched one by one; a longer list has an index."""


class RowLookup:
    """Finds the row of a table by the value, or one of the values, of a field. Where several rows
    have the same value, the first of the table counts.
    """

    __slots__ = ("_keys", "_places", "field", "name")

    def __init__(self, name: str, field: str, table: Mapping[str, msgspec.Struct]) -> None:
        self.name = name
        self.field = field
        self._places: dict[str, int] = {}
        self._keys: dict[str, dict[str, None]] = {}
        for key, row in table.items():
            self.keep_row(key, None, row)

    def find(self, value: str | None) -> str | None:
        """The key of the row with this value."""
        keys = None if value is None else self._keys.get(value)
        return min(keys, key=self._places.__getitem__) if keys else None

    def find_all(self, value: str) -> Collection[str]:
        """The keys of all rows with this value, in no particular order."""
        return self._keys.get(value, {})

    def list_keys(self, values: Iterable[str]) -> list[str]:
        """The keys of all rows with one of these values, in the order of the table."""
        found = [key for value in values for key in self.find_all(value)]
        return sorted(found, key=self._places.__getitem__)

    def keep_row(self, key: str, before: object, row: msgspec.Struct) -> None:
        """A row that is new in the table, or takes the place of another."""
        self._places.setdefault(key, len(self._places))
        self.move_row(key, getattr(before, self.field, None), getattr(row, self.field))

    def move_row(self, key: str, before: object, after: object) -> None:
        """A row whose field changed."""
        for value in _values_of(before):
            keys = self._keys.get(value, {})
            keys.pop(key, None)
            if not keys:
                self._keys.pop(value, None)
        for value in _values_of(after):
            self._keys.setdefault(value, {})[key] = None


def _values_of(field: object) -> list[str]:
    if isinstance(field, str):
        return [field]
    return cast("list[str]", field) if isinstance(field, list) else []


_LOOKED_UP: Final = frozenset(
    {"thread_id", "session_id", "task_id", "remote_task_id", "status", "state", "aliases"}
)
"""Fields that a `RowLookup` finds rows by."""


class StateIndex:
    """Where things stand in a state, and what is open in it."""

    __slots__ = (
        "_tool_places",
        "aliases",
        "entries",
        "has_turns_beside",
        "jobs_by_item",
        "lacks_facts",
        "lists",
        "lookups",
        "message_places",
        "names",
        "newest",
        "open_actions",
        "open_entries",
        "open_messages",
        "open_runs",
        "open_texts",
        "open_tools",
        "open_work",
        "own_parts",
        "part_ids",
        "parts",
        "parts_by_id",
        "plans_by_alias",
        "plans_by_state",
        "renamed",
        "subagents_by_lineage",
        "subagents_by_thread",
        "tasks_by_remote_id",
        "tasks_by_status",
        "unreconciled",
    )

    def __init__(self, state: "ProjectionState") -> None:
        self.unreconciled = False
        self.has_turns_beside = any(turn.entity is not None for turn in state.turns.values())
        self.lacks_facts = False
        self.entries = {entry.entry_id: place for place, entry in enumerate(state.timeline)}
        self.open_actions = {
            key: None for key, action in state.actions.items() if action.status == "pending"
        }
        self.open_entries: dict[str | None, dict[int, None]] = {}
        for place, entry in enumerate(state.timeline):
            self.track_entry(entry, place)
        self.open_runs = {
            key: None
            for key, node in state.graph.nodes.items()
            if node.node_type == "run" and node.status in OPEN_STATUSES
        }
        works = {
            "process": {k: w for k, w in state.processes.items() if w.kind != "command"},
            "command": {k: w for k, w in state.processes.items() if w.kind == "command"},
            "patch": state.coding.patches,
            "test": state.coding.tests,
            "hook": state.hooks,
        }
        self.open_work: dict[str, dict[str, None]] = {
            kind: {key: None for key, work in table.items() if work.status == "running"}
            for kind, table in works.items()
        }
        self._tool_places = {key: place for place, key in enumerate(state.tools)}
        self.open_tools = {key: None for key, tool in state.tools.items() if is_open(tool)}
        threads = state.subagents.threads
        self.subagents_by_thread = RowLookup("subagent_id", "thread_id", threads)
        self.tasks_by_remote_id = RowLookup("task_id", "remote_task_id", state.tasks)
        self.tasks_by_status = RowLookup("task_id", "status", state.tasks)
        self.plans_by_alias = RowLookup("plan_id", "aliases", state.plans)
        self.plans_by_state = RowLookup("plan_id", "state", state.plans)
        self.jobs_by_item = RowLookup("job_id", "running_item_ids", state.jobs)
        self.subagents_by_lineage = {
            "thread_id": self.subagents_by_thread,
            "session_id": RowLookup("subagent_id", "session_id", threads),
            "task_id": RowLookup("subagent_id", "task_id", threads),
        }
        self.lookups: dict[type, tuple[RowLookup, ...]] = {
            SubagentThread: tuple(self.subagents_by_lineage.values()),
            ProjectedTask: (self.tasks_by_remote_id, self.tasks_by_status),
            Job: (self.jobs_by_item,),
            Plan: (self.plans_by_alias, self.plans_by_state),
        }
        self.lists: dict[str, tuple[list[Any], dict[str, int]]] = {}
        self.index_messages(state.messages)

    def index_list(
        self, path: str, rows: list[Any], key: Callable[[Any], str] = str
    ) -> dict[str, int]:
        """The place of each row of a list, so that a long one is not searched for every fact.
        Whoever adds a row or takes one out does so here as well; where one was taken out, those
        behind it are nearer than their places.
        """
        found = self.lists.get(path)
        if found is None or found[0] is not rows:
            found = rows, {key(row): place for place, row in enumerate(rows)}
            self.lists[path] = found
        return found[1]

    def track_entry(self, entry: TimelineEntry, place: int) -> None:
        """Keep an entry among the open ones of its turn, or take it out, as it reads now."""
        places = self.open_entries.get(entry.turn_id)
        if entry.status in OPEN_STATUSES:
            if places is None:
                places = self.open_entries[entry.turn_id] = {}
            places[place] = None
        elif places:
            places.pop(place, None)

    def take_open_entries(self, turn: str | None) -> dict[int, None]:
        """The open entries of a turn, which are tracked no longer."""
        return self.open_entries.pop(turn, {})

    def track_work(self, kind: str, key: str, *, is_open: bool) -> None:
        """Keep a program, patch, test run or hook among the open ones, or take it out."""
        if is_open:
            self.open_work[kind][key] = None
        else:
            self.open_work[kind].pop(key, None)

    def keep_tool(self, key: str) -> None:
        """Note the place of a call that was put behind the others."""
        self._tool_places.setdefault(key, len(self._tool_places))

    def open_tool(self, key: str) -> None:
        self.open_tools[key] = None

    def open_tools_in_order(self) -> list[str]:
        """Open calls in the order in which the state has them."""
        return sorted(self.open_tools, key=self._tool_places.__getitem__)

    def open_messages_in_order(self) -> list[tuple[str, Message]]:
        """Open messages, with their paths, in the order in which the state has them."""
        return [
            (f"/messages/{place}", self.open_messages[place])
            for place in sorted(self.open_messages)
        ]

    def index_messages(self, messages: list[Message]) -> None:
        """Learn anew where every message and part stands."""
        self.parts: dict[tuple[str, str, str | None], PartHandle] = {}
        self.parts_by_id: dict[tuple[int, str, str], PartHandle] = {}
        self.part_ids: set[tuple[int, str]] = set()
        self.own_parts: dict[tuple[int, str], PartHandle] = {}
        self.open_texts: dict[int, int] = {}
        self.open_messages: dict[int, Message] = {}
        self.message_places: dict[tuple[str | None, str], int] = {}
        self.names: dict[str, int] = {}
        self.newest: dict[tuple[str | None, str | None], int] = {}
        self.renamed: dict[str, str] = {}
        self.aliases: dict[tuple[str | None, str], str] = {}
        for place, message in enumerate(messages):
            self.keep_message(message, place)
            path = f"/messages/{place}"
            for index, part in enumerate(message.parts):
                self.keep_part(PartHandle(message, place, part, f"{path}/parts/{index}"))

    def keep_message(self, message: Message, place: int) -> None:
        self.message_places[message.turn_id, message.message_id] = place
        self.names[message.message_id] = place
        if message.optimistic_id is not None:
            self.renamed[message.optimistic_id] = message.message_id
        if message.aliases:
            self.keep_aliases(message, place)
        if message.role != "user":
            self.newest[message.turn_id, message.subagent_id] = place
        if message.status in ("streaming", "stale"):
            self.open_messages[place] = message

    def keep_part(self, handle: PartHandle) -> None:
        place, part, kind = handle.place, handle.part, kind_of_part(handle.part)
        self.parts_by_id[place, kind, part.part_id] = handle
        self.part_ids.add((place, part.part_id))
        if isinstance(part, TEXT_PARTS):
            if part.aliases:
                self.keep_part_aliases(handle, kind)
            if handle.message.turn_id is not None:
                self.parts.pop((handle.message.turn_id, part.message_id, None), None)
        if has_generated_id(part, kind):
            self.own_parts[place, kind] = handle
        if isinstance(part, TextPart) and part.state == "streaming":
            self.open_texts[place] = self.open_texts.get(place, 0) + 1

    def keep_aliases(self, message: Message, place: int) -> None:
        """Find a message by the other names that facts of its turn have for it, too."""
        for alias in message.aliases or ():
            self.message_places.setdefault((message.turn_id, alias), place)
            self.names.setdefault(alias, place)
            self.aliases[message.turn_id, alias] = message.message_id

    def keep_part_aliases(self, handle: PartHandle, kind: str) -> None:
        """Find a part by the other names that facts have for it, too."""
        part, place = handle.part, handle.place
        if isinstance(part, TEXT_PARTS):
            for alias in part.aliases or ():
                self.parts_by_id.setdefault((place, kind, alias), handle)
                self.part_ids.add((place, alias))

    def message_place(self, turn: str | None, message_id: str) -> int | None:
        """Where a message stands; ids of other turns' messages are not its own."""
        place = self.message_places.get((turn, message_id))
        if place is not None:
            return place
        if turn is None:
            return self.names.get(message_id)
        return self.message_places.get((None, message_id))


def has_generated_id(part: Part, kind: str) -> bool:
    """Whether a part has a name that is given to parts whose facts name none."""
    name, own = part.part_id, f"{part.message_id}:{kind}"
    return name == own or name.startswith(f"{own}:")


Node = TypeVar("Node")

_SCALARS: Final = frozenset({str, int, float, bool})


def to_plain_json(value: object) -> Any:
    """A value as JSON that nobody else holds."""
    return msgspec.to_builtins(value, enc_hook=str)


class StateDraft:
    """A state, what the reducers remember beside it, and the operations of the fact under way.
    `is_own` is whether `owned_fact`, the last fact that this was worked out for, is about the
    thread's own run.
    """

    __slots__ = (
        "ambiguous",
        "is_own",
        "memory",
        "opened",
        "ops",
        "overruled",
        "owned_fact",
        "part",
        "state",
    )

    def __init__(self, state: ProjectionState, memory: StateIndex) -> None:
        self.state = state
        self.memory = memory
        self.ops: list[Operation] = []
        self.opened = False
        self.ambiguous = False
        self.overruled: str | None = None
        self.part: PartHandle | None = None
        self.owned_fact: Fact | None = None
        self.is_own = False

    def begin(self) -> None:
        """A new fact: nothing is new in the state yet, and no part is spoken of."""
        self.opened = False
        self.part = None

    def put(self, node: msgspec.Struct, path: str, field: str, value: object) -> None:
        """Set one field, to None too."""
        before = getattr(node, field)
        if before is value:
            return
        kind = type(value)
        if kind is type(before) and (before == value if kind in _SCALARS else same(before, value)):
            return
        setattr(node, field, value)
        if field in _LOOKED_UP:
            self._look_up_anew(node, field, before, value)
        place = f"{path}/{WIRE_NAMES.get(field) or wire_spelling_of_field(field)}"
        if value is None:
            self.ops.append(Operation("remove", place))
        else:
            own = value if kind in _SCALARS else to_plain_json(value)
            self.ops.append(Operation("add" if before is None else "replace", place, own))

    def _look_up_anew(
        self, node: msgspec.Struct, field: str, before: object, value: object
    ) -> None:
        for lookup in self.memory.lookups.get(type(node), ()):
            if lookup.field == field:
                lookup.move_row(getattr(node, lookup.name), before, value)

    def take(
        self, node: msgspec.Struct, path: str, payload: dict[str, Any], checks: FieldChecks
    ) -> None:
        """Set the fields that a payload states, by a table of those that count."""
        for name, value in payload.items():
            rule = checks.get(name)
            if rule is not None:
                field, checked = rule
                found = checked(value)
                if found is not None:
                    self.put(node, path, field, found)

    def fill(self, node: msgspec.Struct, path: str, /, **fields: object) -> None:
        """Set the fields that are known; an unknown one stays as it was."""
        for field, value in fields.items():
            if value is not None:
                self.put(node, path, field, value)

    def create(self, table: dict[str, Node], path: str, key: str, node: Node) -> Node:
        """Put a new node into a table."""
        for lookup in self.memory.lookups.get(type(node), ()):
            lookup.keep_row(key, table.get(key), cast("msgspec.Struct", node))
        table[key] = node
        self.opened = True
        self.ops.append(Operation("add", f"{path}/{escape_key(key)}", to_plain_json(node)))
        return node

    def remove(self, table: dict[str, Any], path: str, key: str) -> None:
        """Take a node out of a table."""
        del table[key]
        self.ops.append(Operation("remove", f"{path}/{escape_key(key)}"))

    def push(self, items: list[Any], path: str, item: object, keep: int | None = None) -> None:
        """Add to the end of a list; past `keep`, the oldest makes room."""
        items.append(item)
        self.opened = True
        self.ops.append(Operation("add", f"{path}/-", to_plain_json(item)))
        if keep is not None and len(items) > keep:
            del items[0]
            self.ops.append(Operation("remove", f"{path}/0"))

    def extend(self, node: msgspec.Struct, path: str, field: str, texts: list[str]) -> None:
        """Add texts that a list of a node does not have yet; only what is new is sent."""
        if not texts:
            return
        existing: list[str] | None = getattr(node, field)
        if existing is None:
            self.put(node, path, field, list(dict.fromkeys(texts)) or None)
            return
        place = f"{path}/{wire_spelling_of_field(field)}"
        is_long = len(existing) >= INDEXED_ROWS
        places = self.memory.index_list(place, existing) if is_long else None
        for text in texts:
            if text not in (existing if places is None else places):
                if places is not None:
                    places[text] = len(existing)
                existing.append(text)
                self.ops.append(Operation("add", f"{place}/-", text))

    def list_text(self, items: list[str], path: str, text: str, *, listed: bool) -> None:
        """Have a text in a list, at its end if it is new, or have it there no longer."""
        places = self.memory.index_list(path, items)
        if listed and text not in places:
            places[text] = len(items)
            items.append(text)
            self.ops.append(Operation("add", f"{path}/-", text))
        elif not listed and text in places:
            # Those before it may have gone, so that it is at most as far back as it was.
            place = items.index(text, 0, places.pop(text) + 1)
            del items[place]
            self.ops.append(Operation("remove", f"{path}/{place}"))

    def has_text(self, node: msgspec.Struct, path: str, field: str, text: str) -> bool:
        """Whether a list of a node has a text."""
        existing: list[str] = getattr(node, field) or []
        if len(existing) < INDEXED_ROWS:
            return text in existing
        place = f"{path}/{wire_spelling_of_field(field)}"
        return text in self.memory.index_list(place, existing)

    def grow(self, text: Text, path: str, piece: str) -> None:
        """Add a piece to a text."""
        text.append(piece)
        self.ops.append(Operation("append", path, piece))

    def rewrite(self, node: msgspec.Struct, path: str, field: str, text: str) -> None:
        """Give a text another wording; where it only grew, only the growth is sent."""
        before: Text = getattr(node, field)
        old, place = str(before), f"{path}/{wire_spelling_of_field(field)}"
        if text.startswith(old):
            if len(text) > len(old):
                self.grow(before, place, text[len(old) :])
            return
        setattr(node, field, Text(text))
        self.ops.append(Operation("replace", place, text))

    def count(self, node: msgspec.Struct, path: str, field: str, by: int = 1) -> None:
        """Move a counter."""
        if by:
            self.put(node, path, field, getattr(node, field) + by)
