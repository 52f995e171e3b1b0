"""A screen that shows somebody's chats: loaded once over REST, then kept current by events alone.

It knows of events what their documentation says, and shares no code with the Hub.
"""

from typing import Any

from tests.hub.chat_people import read_all
from tests.hub.hubs import HubPerson

_MEMBER = {
    "member_id": "memberId",
    "member_type": "memberType",
    "name": "name",
    "joined_at": "joinedAt",
    "last_read_seq": "lastReadSeq",
    "device_id": "deviceId",
    "agent_type": "agentType",
    "target_id": "targetId",
}
_CHAT = {
    "session_id": "chatId",
    "type": "type",
    "name": "name",
    "description": "description",
    "owner_id": "ownerId",
    "created_at": "createdAt",
    "member_count": "memberCount",
    "last_seq": "lastSeq",
    "edge_id": "edgeId",
    "thread_id": "threadId",
}
_MESSAGE = {
    "message_id": "messageId",
    "session_id": "chatId",
    "sender_id": "senderId",
    "sender_type": "senderType",
    "content": "content",
    "content_type": "contentType",
    "seq_id": "seqId",
    "created_at": "createdAt",
    "client_msg_id": "clientMsgId",
}


def _rename(payload: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names[name]: value for name, value in payload.items() if name in names}


class ChatScreen:
    """What one person sees. Of a chat that came by an event, `since` says which messages are only
    to be had over REST.
    """

    def __init__(self, person_id: str) -> None:
        self.person_id = person_id
        self.as_of = ""
        self.friends: dict[str, Any] = {}
        self.requests: dict[str, Any] = {}
        self.chats: dict[str, Any] = {}
        self.members: dict[str, dict[str, Any]] = {}
        self.messages: dict[str, dict[str, Any]] = {}
        self.since: dict[str, int] = {}

    def apply(self, kind: str, payload: dict[str, Any]) -> None:
        getattr(self, "_on_" + kind.replace(".", "_"))(payload)

    def shown(self, since: dict[str, int]) -> dict[str, Any]:
        """All of it, without messages of chats before some numbers."""
        return {
            "friends": self.friends,
            "requests": self.requests,
            "chats": self.chats,
            "members": self.members,
            "messages": {
                chat: {key: row for key, row in rows.items() if row["seqId"] > since.get(chat, 0)}
                for chat, rows in self.messages.items()
            },
        }

    def _on_friend_request(self, payload: dict[str, Any]) -> None:
        self.requests[payload["request_id"]] = {
            "requestId": payload["request_id"],
            "fromPersonId": payload["from_user_id"],
            "fromName": payload["from_name"],
            "toPersonId": payload["to_user_id"],
            "toName": payload["to_name"],
            "message": payload["message"],
            "createdAt": payload["created_at"],
        }

    def _on_friend_request_ended(self, payload: dict[str, Any]) -> None:
        del self.requests[payload["request_id"]]

    def _on_friend_accepted(self, payload: dict[str, Any]) -> None:
        other = payload["user_id"]
        self.friends[other] = {
            "friendshipId": payload["friendship_id"],
            "personId": other,
            "name": payload["name"],
            "createdAt": payload["created_at"],
        }
        self.requests = {
            key: row
            for key, row in self.requests.items()
            if other not in (row["fromPersonId"], row["toPersonId"])
        }

    def _on_friend_removed(self, payload: dict[str, Any]) -> None:
        del self.friends[payload["user_id"]]

    def _on_session_created(self, payload: dict[str, Any]) -> None:
        chat_id = payload["session_id"]
        members = [_rename(each, _MEMBER) for each in payload["members"]]
        self.members[chat_id] = {each["memberId"]: each for each in members}
        own = self.members[chat_id][self.person_id]
        self.chats[chat_id] = {
            **_rename(payload, _CHAT),
            "lastReadSeq": own["lastReadSeq"],
        }
        self.messages[chat_id] = {}
        self.since[chat_id] = payload["last_seq"]

    def _on_session_dissolved(self, payload: dict[str, Any]) -> None:
        self._forget(payload["session_id"])

    def _on_session_member_joined(self, payload: dict[str, Any]) -> None:
        member, members = _rename(payload, _MEMBER), self.members[payload["session_id"]]
        # An agent whose Edge has joined again comes again, with its new device.
        self.chats[payload["session_id"]]["memberCount"] += member["memberId"] not in members
        members[member["memberId"]] = member

    def _on_session_member_left(self, payload: dict[str, Any]) -> None:
        if payload["member_id"] == self.person_id:
            self._forget(payload["session_id"])
            return
        del self.members[payload["session_id"]][payload["member_id"]]
        self.chats[payload["session_id"]]["memberCount"] -= 1

    def _on_session_info_updated(self, payload: dict[str, Any]) -> None:
        self.chats[payload["session_id"]] |= _rename(payload["changes"], _CHAT)

    def _forget(self, chat_id: str) -> None:
        for known in (self.chats, self.members, self.messages):
            del known[chat_id]
        self.since.pop(chat_id, None)

    def _read(self, chat_id: str, member_id: str, seq: int) -> None:
        member = self.members[chat_id].get(member_id)
        if member is not None and member["memberType"] == "user":
            member["lastReadSeq"] = seq
        if member_id == self.person_id:
            self.chats[chat_id]["lastReadSeq"] = seq

    def _on_message_new(self, payload: dict[str, Any]) -> None:
        message: dict[str, Any] = {**_rename(payload, _MESSAGE), "reactions": []}
        if payload["reply_to_message_id"] is not None:
            message["replyToMessageId"] = payload["reply_to_message_id"]
        chat_id = message["chatId"]
        self.messages[chat_id][message["messageId"]] = message
        self.chats[chat_id]["lastSeq"] = message["seqId"]
        self._read(chat_id, message["senderId"], message["seqId"])

    def _message(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The message of an event; one that is not on this screen changes out of sight."""
        return self.messages[payload["session_id"]].get(
            payload["message_id"], {"seqId": 0, "reactions": []}
        )

    def _on_message_edited(self, payload: dict[str, Any]) -> None:
        changed = {"content": payload["content"], "editedAt": payload["edited_at"]}
        self._message(payload).update(changed)

    def _on_message_recall(self, payload: dict[str, Any]) -> None:
        message = self._message(payload)
        message.update(
            content={},
            reactions=[],
            recalledBy=payload["recalled_by"],
            recalledAt=payload["recalled_at"],
        )
        for name in ("editedAt", "pinnedAt", "pinnedBy"):
            message.pop(name, None)

    def _on_message_pin(self, payload: dict[str, Any]) -> None:
        pinned = {"pinnedBy": payload["pinned_by"], "pinnedAt": payload["pinned_at"]}
        self._message(payload).update(pinned)

    def _on_message_unpin(self, payload: dict[str, Any]) -> None:
        for name in ("pinnedAt", "pinnedBy"):
            self._message(payload).pop(name, None)

    def _on_message_read(self, payload: dict[str, Any]) -> None:
        self._read(payload["session_id"], payload["read_by"], payload["last_read_seq"])

    def _on_message_reaction(self, payload: dict[str, Any]) -> None:
        message = self._message(payload)
        found = {each["emoji"]: set(each["personIds"]) for each in message["reactions"]}
        people = found.setdefault(payload["emoji"], set())
        if payload["removed"]:
            people.discard(payload["user_id"])
        else:
            people.add(payload["user_id"])
        message["reactions"] = [
            {"emoji": emoji, "personIds": sorted(who)}
            for emoji, who in sorted(found.items())
            if who
        ]


async def load_screen(person: HubPerson) -> ChatScreen:
    """Everything that somebody sees, read over REST while nobody writes."""
    screen = ChatScreen(person.person_id)
    screen.as_of = (await person.get("/v1/chats"))["asOf"]
    screen.friends = {row["personId"]: row for row in await read_all(person, "/v1/contacts")}
    for direction in ("in", "out"):
        for row in await read_all(person, f"/v1/friend-requests?direction={direction}"):
            screen.requests[row["requestId"]] = row
    for row in await read_all(person, "/v1/chats"):
        chat_id = row["chatId"]
        screen.chats[chat_id] = row
        members = await read_all(person, f"/v1/chats/{chat_id}/members")
        screen.members[chat_id] = {each["memberId"]: each for each in members}
        page = await person.get(f"/v1/chats/{chat_id}/messages?after=0&limit=200")
        assert "hasAfter" not in page
        screen.messages[chat_id] = {each["messageId"]: each for each in page["items"]}
        pins = await person.get(f"/v1/chats/{chat_id}/pins")
        assert {each["messageId"] for each in pins["items"]} == {
            key for key, each in screen.messages[chat_id].items() if "pinnedAt" in each
        }
        assert page["asOf"] == pins["asOf"] == screen.as_of
    return screen
