"""Memory: what reducers remember beside a state, so that no fact costs a search.

All of it follows from the state alone and is built again from it when a projection is restored, so
that a restored projection goes on exactly as one that never stopped.
"""

from typing import TYPE_CHECKING

from factwire.projection.parts import Message, Part, PartHandle, TextPart, kind_of_part
from factwire.projection.tools import is_open

if TYPE_CHECKING:
    from factwire.projection.state import ProjectionState


class Memory:
    """Where things stand in a state, and what is open in it."""

    __slots__ = (
        "_tool_places",
        "entries",
        "message_places",
        "names",
        "newest",
        "open_actions",
        "open_messages",
        "open_texts",
        "open_tools",
        "own_parts",
        "part_ids",
        "parts",
        "parts_by_id",
        "renamed",
        "unreconciled",
    )

    def __init__(self, state: "ProjectionState") -> None:
        self.unreconciled = False
        self.entries = {entry.entry_id: place for place, entry in enumerate(state.timeline)}
        self.open_actions = {
            key: None for key, action in state.actions.items() if action.status == "pending"
        }
        self._tool_places = {key: place for place, key in enumerate(state.tools)}
        self.open_tools = {key: None for key, tool in state.tools.items() if is_open(tool)}
        self.index_messages(state.messages)

    def open_tool(self, key: str) -> None:
        self._tool_places.setdefault(key, len(self._tool_places))
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
        if message.role != "user":
            self.newest[message.turn_id, message.subagent_id] = place
        if message.status in ("streaming", "stale"):
            self.open_messages[place] = message

    def keep_part(self, handle: PartHandle) -> None:
        place, part, kind = handle.place, handle.part, kind_of_part(handle.part)
        self.parts_by_id[place, kind, part.part_id] = handle
        self.part_ids.add((place, part.part_id))
        if is_own(part, kind):
            self.own_parts[place, kind] = handle
            if handle.message.turn_id is not None:
                self.parts.pop((handle.message.turn_id, part.message_id, None), None)
        if isinstance(part, TextPart) and part.state == "streaming":
            self.open_texts[place] = self.open_texts.get(place, 0) + 1

    def message_place(self, turn: str | None, message_id: str) -> int | None:
        """Where a message stands; ids of other turns' messages are not its own."""
        place = self.message_places.get((turn, message_id))
        if place is not None:
            return place
        if turn is None:
            return self.names.get(message_id)
        return self.message_places.get((None, message_id))


def is_own(part: Part, kind: str) -> bool:
    """Whether a part has a name that is given to parts whose facts name none."""
    own = f"{part.message_id}:{kind}"
    _, found, rest = part.part_id.partition(own)
    return bool(found) and part.part_id.startswith(own) and (rest == "" or rest[0] == ":")
