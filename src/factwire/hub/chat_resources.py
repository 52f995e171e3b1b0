"""Friends, chats and messages as the REST interface shows them, and the bodies that change them.

Names inside `content` are single words, so that a message reads the same here and in a frame.
"""

from typing import Annotated, Any, Literal

import msgspec

from factwire.hub.frames.frame_types import ChatType, MemberType, SenderType
from factwire.hub.hub_resources import HubBody, HubResource
from factwire.hub.limits import (
    ATTACHMENT_BYTES,
    ATTACHMENT_NAME_CHARACTERS,
    ATTACHMENTS,
    CHAT_DESCRIPTION_CHARACTERS,
    CHAT_NAME_CHARACTERS,
    CLIENT_MESSAGE_ID_CHARACTERS,
    EMOJI_CHARACTERS,
    MEMBERS_AT_ONCE,
    MENTIONS,
    MESSAGE_CHARACTERS,
    PERSON_NAME_CHARACTERS,
    REQUEST_CHARACTERS,
)

ContentType = Literal["text", "markdown", "attachment"]
_ID_CHARACTERS = 64


class FoundPerson(HubResource, frozen=True, kw_only=True):
    """Somebody whose name was looked up."""

    person_id: str
    name: str


class Friend(HubResource, frozen=True, kw_only=True):
    friendship_id: str
    person_id: str
    name: str
    created_at: str


class PendingFriendRequest(HubResource, frozen=True, kw_only=True):
    """A request that nobody has answered yet."""

    request_id: str
    from_person_id: str
    from_name: str
    to_person_id: str
    to_name: str
    message: str
    created_at: str


class Chat(HubResource, frozen=True, kw_only=True):
    """A chat that you are in; frames call its id `session_id`. `lastSeq` is the number of its
    newest message, `lastReadSeq` how far you have read.
    """

    chat_id: str
    type: ChatType
    name: str
    description: str
    owner_id: str
    created_at: str
    member_count: int
    last_seq: int
    last_read_seq: int
    edge_id: str | None = None
    thread_id: str | None = None
    as_of: str | None = None


class ChatParticipant(HubResource, frozen=True, kw_only=True):
    """A person or an agent of a chat."""

    member_id: str
    member_type: MemberType
    name: str
    joined_at: str
    last_read_seq: int
    device_id: str | None = None
    agent_type: str | None = None
    target_id: str | None = None


class Reaction(HubResource, frozen=True, kw_only=True):
    emoji: str
    person_ids: list[str]


class ChatMessage(HubResource, frozen=True, kw_only=True):
    """A message as it is now. Of one that was recalled, `content` is empty."""

    message_id: str
    chat_id: str
    seq_id: int
    client_msg_id: str
    sender_id: str
    sender_type: SenderType
    content: dict[str, Any]
    content_type: str
    created_at: str
    reply_to_message_id: str | None = None
    edited_at: str | None = None
    recalled_at: str | None = None
    recalled_by: str | None = None
    pinned_at: str | None = None
    pinned_by: str | None = None
    reactions: list[Reaction] = msgspec.field(default_factory=list[Reaction])
    as_of: str | None = None


class MessageWindow(HubResource, frozen=True, kw_only=True):
    """Messages of a chat, oldest first; `hasBefore` and `hasAfter` say whether there are others
    on either side.
    """

    items: list[ChatMessage]
    as_of: str
    has_before: bool = False
    has_after: bool = False


class SnippetPart(HubResource, frozen=True, kw_only=True):
    """A piece of a message; `match` where it is what was searched for."""

    text: str
    match: bool = False


class MessageHit(HubResource, frozen=True, kw_only=True):
    message: ChatMessage
    snippet: list[SnippetPart]


class SyncedEvent(HubResource, frozen=True, kw_only=True):
    """An event as the socket sends it."""

    type: str
    payload: dict[str, Any]
    created_at: str


class SyncPage(HubResource, frozen=True, kw_only=True):
    """Your events after a cursor, in order. Ask again with `cursor`; at once, while there is
    `more`.
    """

    events: list[SyncedEvent]
    cursor: str
    more: bool = False


class Attachment(HubResource, frozen=True, kw_only=True):
    attachment_id: str
    name: str
    media_type: str
    bytes: int
    created_at: str


_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=_ID_CHARACTERS)]


class FriendRequestBody(HubBody, frozen=True, kw_only=True):
    person_id: _Id
    message: Annotated[str, msgspec.Meta(max_length=REQUEST_CHARACTERS)] = ""


_ChatName = Annotated[str, msgspec.Meta(min_length=1, max_length=CHAT_NAME_CHARACTERS)]
_Description = Annotated[str, msgspec.Meta(max_length=CHAT_DESCRIPTION_CHARACTERS)]
_People = Annotated[list[_Id], msgspec.Meta(max_length=MEMBERS_AT_ONCE)]


class PrivateChatBody(HubBody, frozen=True, kw_only=True, tag_field="type", tag="private"):
    """The chat with a friend, of which there is one."""

    person_id: _Id


class GroupChatBody(HubBody, frozen=True, kw_only=True, tag_field="type", tag="group"):
    name: _ChatName
    description: _Description = ""
    person_ids: _People = msgspec.field(default_factory=list[str])


class ThreadChatBody(HubBody, frozen=True, kw_only=True, tag_field="type", tag="thread"):
    """The chat of a mirrored thread, of which there is one."""

    edge_id: _Id
    thread_id: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


ChatBody = PrivateChatBody | GroupChatBody | ThreadChatBody


class ChatChange(HubBody, frozen=True, kw_only=True):
    name: _ChatName | msgspec.UnsetType = msgspec.UNSET
    description: _Description | msgspec.UnsetType = msgspec.UNSET
    owner_id: _Id | msgspec.UnsetType = msgspec.UNSET


class PeopleBody(HubBody, frozen=True, kw_only=True):
    person_ids: Annotated[list[_Id], msgspec.Meta(min_length=1, max_length=MEMBERS_AT_ONCE)]


class AgentBody(HubBody, frozen=True, kw_only=True):
    """An agent of a device, under the name by which this chat mentions it."""

    device_id: _Id
    agent_type: _Id
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=PERSON_NAME_CHARACTERS)]
    target_id: _Id | None = None


_Text = Annotated[str, msgspec.Meta(max_length=MESSAGE_CHARACTERS)]
_Mentions = Annotated[list[_Id], msgspec.Meta(max_length=MENTIONS)]
_Uploads = Annotated[list[_Id], msgspec.Meta(max_length=ATTACHMENTS)]


class ContentBody(HubBody, frozen=True, kw_only=True):
    """What is said. `mentions` are ids of members, `attachments` those of uploads."""

    text: _Text = ""
    mentions: _Mentions = msgspec.field(default_factory=list[str])
    attachments: _Uploads = msgspec.field(default_factory=list[str])


class ChatMessageBody(HubBody, frozen=True, kw_only=True):
    """A message; the same `clientMsgId` is the same message, however often it is sent."""

    client_msg_id: Annotated[
        str, msgspec.Meta(min_length=1, max_length=CLIENT_MESSAGE_ID_CHARACTERS, pattern="^[!-~]+$")
    ]
    content: ContentBody
    content_type: ContentType = "text"
    reply_to_message_id: _Id | None = None


class EditBody(HubBody, frozen=True, kw_only=True):
    text: _Text
    mentions: _Mentions = msgspec.field(default_factory=list[str])


class ReadBody(HubBody, frozen=True, kw_only=True):
    seq_id: Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class ReactionBody(HubBody, frozen=True, kw_only=True):
    emoji: Annotated[str, msgspec.Meta(min_length=1, max_length=EMOJI_CHARACTERS)]


class AttachmentBody(HubBody, frozen=True, kw_only=True):
    """A file, in base64, because a Hub accepts only JSON."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=ATTACHMENT_NAME_CHARACTERS)]
    media_type: Annotated[
        str, msgspec.Meta(max_length=100, pattern=r"^[a-z0-9.+-]+/[a-z0-9.+-]+$")
    ] = "application/octet-stream"
    content: Annotated[bytes, msgspec.Meta(max_length=ATTACHMENT_BYTES)]
