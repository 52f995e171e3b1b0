"""Memory: what reducers remember beside a state, so that no fact costs a search.

All of it follows from the state and is built again from it when a projection is restored; only
what waits for reconciliation is carried by a checkpoint.
"""

from typing import TYPE_CHECKING

from factwire.projection.parts import Message, PartHandle

if TYPE_CHECKING:
    from factwire.projection.state import ProjectionState


class Memory:
    """Where things stand in a state, and what is open in it."""

    __slots__ = (
        "entries",
        "message_places",
        "names",
        "newest",
        "open_actions",
        "open_messages",
        "open_tools",
        "parts",
        "parts_by_id",
        "renamed",
        "unfinished",
        "unreconciled",
    )

    def __init__(self, state: "ProjectionState") -> None:
        self.renamed = {
            message.optimistic_id: message.message_id
            for message in state.messages
            if message.optimistic_id
        }
        self.unreconciled = False
        self.unfinished: dict[str, PartHandle] = {}
        self.entries = {entry.entry_id: place for place, entry in enumerate(state.timeline)}
        self.open_actions = {
            key: None for key, action in state.actions.items() if action.status == "pending"
        }
        self.open_tools = {
            key: None for key, tool in state.tools.items() if tool.completed_at is None
        }
        self.index_messages(state.messages)

    def index_messages(self, messages: list[Message]) -> None:
        """Learn anew where every message and part stands."""
        self.parts: dict[tuple[str | None, str, str | None], PartHandle] = {}
        self.parts_by_id: dict[tuple[int, str], PartHandle] = {}
        self.open_messages: dict[str, Message] = {}
        self.message_places: dict[tuple[str | None, str], int] = {}
        self.names: dict[str, int] = {}
        self.newest: dict[tuple[str | None, str | None], int] = {}
        for place, message in enumerate(messages):
            self.keep_message(message, place)
            path = f"/messages/{place}"
            for index, part in enumerate(message.parts):
                self.keep_part(PartHandle(message, path, part, f"{path}/parts/{index}"))

    def keep_message(self, message: Message, place: int) -> None:
        self.message_places[message.turn_id, message.message_id] = place
        self.names[message.message_id] = place
        if message.role != "user":
            self.newest[message.turn_id, message.subagent_id] = place
        if message.status == "streaming":
            self.open_messages[f"/messages/{place}"] = message

    def keep_part(self, handle: PartHandle) -> None:
        place = int(handle.message_path.rpartition("/")[2])
        self.parts_by_id[place, handle.part.part_id] = handle

    def message_place(self, turn: str | None, message_id: str) -> int | None:
        """Where a message stands; ids of other turns' messages are not its own."""
        place = self.message_places.get((turn, message_id))
        if place is not None:
            return place
        if turn is None:
            return self.names.get(message_id)
        return self.message_places.get((None, message_id))
