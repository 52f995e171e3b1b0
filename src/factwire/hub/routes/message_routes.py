"""Messages: send, list, search, sync, edit, recall, pin, react; and their attachments."""

from typing import Annotated

from litestar import delete, get, patch, post
from litestar.params import FromPath, JSONBody, QueryParameter
from litestar.response import Stream
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED, HTTP_204_NO_CONTENT

from factwire.hub.chat_resources import (
    Attachment,
    AttachmentBody,
    ChatMessage,
    ChatMessageBody,
    EditBody,
    MessageHit,
    MessageWindow,
    ReactionBody,
    SyncPage,
)
from factwire.hub.chats import attachments, chat_messages, message_reading
from factwire.hub.device_resources import StatePage
from factwire.hub.limits import SEARCH_CHARACTERS
from factwire.hub.routes.hub_requests import (
    HubRequest,
    RouteGroup,
    caller_of,
    clean_id,
    id_from_key,
    origin_of,
    services_of,
)
from factwire.serving.asgi import Problem
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit
from factwire.serving.rest import declare_bytes

_MOST = 2**53


@get("/v1/chats/{chat_id:str}/messages", tags=["messages"])
async def list_messages(
    request: HubRequest,
    chat_id: FromPath[str],
    *,
    before: Annotated[
        int | None, QueryParameter(ge=1, le=_MOST, description="Messages before this number.")
    ] = None,
    after: Annotated[
        int | None, QueryParameter(ge=0, le=_MOST, description="Messages after this number.")
    ] = None,
    around: Annotated[
        int | None, QueryParameter(ge=1, le=_MOST, description="Messages around this number.")
    ] = None,
    limit: Limit = DEFAULT_LIMIT,
) -> MessageWindow:
    """List messages of a chat, oldest first: before, after or around a number, or the newest ones.
    A member reads everything that was ever said in the chat.
    """
    return await message_reading.list_messages(
        services_of(request),
        caller_of(request),
        clean_id(chat_id),
        before=before,
        after=after,
        around=around,
        limit=limit,
    )


@post("/v1/chats/{chat_id:str}/messages", status_code=HTTP_201_CREATED, tags=["messages"])
async def send_message(
    request: HubRequest, chat_id: FromPath[str], data: JSONBody[ChatMessageBody]
) -> ChatMessage:
    """Send a message. The same `clientMsgId` is the same message, however often it is sent. An
    agent that is mentioned gets the text as a task, as far as you may give it one.
    """
    return await chat_messages.send_message(
        services_of(request), caller_of(request), clean_id(chat_id), data, origin_of(request)
    )


@get("/v1/chats/{chat_id:str}/messages/{message_id:str}", tags=["messages"])
async def read_message(
    request: HubRequest, chat_id: FromPath[str], message_id: FromPath[str]
) -> ChatMessage:
    """Get a message."""
    return await message_reading.read_message(
        services_of(request), caller_of(request), clean_id(chat_id), clean_id(message_id)
    )


@patch("/v1/chats/{chat_id:str}/messages/{message_id:str}", tags=["messages"])
async def edit_message(
    request: HubRequest,
    chat_id: FromPath[str],
    message_id: FromPath[str],
    data: JSONBody[EditBody],
) -> ChatMessage:
    """Edit the text of a message that you sent within the last 15 minutes."""
    return await chat_messages.edit_message(
        services_of(request), caller_of(request), clean_id(chat_id), clean_id(message_id), data
    )


@delete(
    "/v1/chats/{chat_id:str}/messages/{message_id:str}",
    status_code=HTTP_200_OK,
    tags=["messages"],
)
async def recall_message(
    request: HubRequest, chat_id: FromPath[str], message_id: FromPath[str]
) -> ChatMessage:
    """Recall a message that you sent within the last 5 minutes or, in a group that is yours,
    any message. Its content is removed everywhere, and so are its files.
    """
    return await chat_messages.recall_message(
        services_of(request), caller_of(request), clean_id(chat_id), clean_id(message_id)
    )


@post(
    "/v1/chats/{chat_id:str}/messages/{message_id:str}/pin",
    status_code=HTTP_200_OK,
    tags=["messages"],
)
async def pin_message(
    request: HubRequest, chat_id: FromPath[str], message_id: FromPath[str]
) -> ChatMessage:
    """Pin a message for everybody in the chat."""
    return await chat_messages.pin_message(
        services_of(request), caller_of(request), clean_id(chat_id), clean_id(message_id)
    )


@delete(
    "/v1/chats/{chat_id:str}/messages/{message_id:str}/pin",
    status_code=HTTP_204_NO_CONTENT,
    tags=["messages"],
)
async def unpin_message(
    request: HubRequest, chat_id: FromPath[str], message_id: FromPath[str]
) -> None:
    """Unpin a message."""
    await chat_messages.unpin_message(
        services_of(request), caller_of(request), clean_id(chat_id), clean_id(message_id)
    )


@get("/v1/chats/{chat_id:str}/pins", tags=["messages"])
async def list_pins(request: HubRequest, chat_id: FromPath[str]) -> StatePage[ChatMessage]:
    """List the pinned messages of a chat, the one pinned last first; there are at most 50."""
    return await message_reading.list_pins(
        services_of(request), caller_of(request), clean_id(chat_id)
    )


@post(
    "/v1/chats/{chat_id:str}/messages/{message_id:str}/reactions",
    status_code=HTTP_200_OK,
    tags=["messages"],
)
async def add_reaction(
    request: HubRequest,
    chat_id: FromPath[str],
    message_id: FromPath[str],
    data: JSONBody[ReactionBody],
) -> ChatMessage:
    """React to a message."""
    return await chat_messages.set_reaction(
        services_of(request),
        caller_of(request),
        clean_id(chat_id),
        clean_id(message_id),
        data.emoji,
        present=True,
    )


@delete(
    "/v1/chats/{chat_id:str}/messages/{message_id:str}/reactions/{emoji:str}",
    status_code=HTTP_200_OK,
    tags=["messages"],
)
async def remove_reaction(
    request: HubRequest, chat_id: FromPath[str], message_id: FromPath[str], emoji: FromPath[str]
) -> ChatMessage:
    """Take a reaction of yours back."""
    return await chat_messages.set_reaction(
        services_of(request),
        caller_of(request),
        clean_id(chat_id),
        clean_id(message_id),
        emoji,
        present=False,
    )


@get("/v1/messages/search", tags=["messages"])
async def search_messages(
    request: HubRequest,
    words: Annotated[
        str,
        QueryParameter(name="q", description="Words; the last one may be the beginning of one."),
    ],
    chat_id: Annotated[str | None, QueryParameter(name="chatId")] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> StatePage[MessageHit]:
    """Search your chats, or one of them, for messages that have all these words, newest first."""
    if len(words) > SEARCH_CHARACTERS:
        raise Problem(
            400, "search_too_long", f"a search has at most {SEARCH_CHARACTERS} characters"
        )
    chosen = None if chat_id is None else clean_id(chat_id)
    return await message_reading.search_messages(
        services_of(request), caller_of(request), words, chosen, cursor=after, limit=limit
    )


@get("/v1/messages/sync", tags=["messages"])
async def sync_messages(
    request: HubRequest,
    cursor: Annotated[
        str | None,
        QueryParameter(description="The `asOf` of a list, or the `cursor` of the last answer."),
    ] = None,
    limit: Limit = DEFAULT_LIMIT,
) -> SyncPage:
    """Get your events about chats and friends after a cursor, for clients without a socket. Without
    a cursor, the answer has the present one and no events. 410 means to load the lists again.
    """
    return await message_reading.sync_events(
        services_of(request), caller_of(request), cursor, limit
    )


@post("/v1/chats/{chat_id:str}/attachments", status_code=HTTP_201_CREATED, tags=["messages"])
async def upload_attachment(
    request: HubRequest, chat_id: FromPath[str], data: JSONBody[AttachmentBody]
) -> Attachment:
    """Upload a file for a message of a chat. Nobody else can read it until a message names it;
    after a day without one it is removed.
    """
    return await attachments.upload_attachment(
        services_of(request),
        caller_of(request),
        clean_id(chat_id),
        data,
        id_from_key(request, "att"),
    )


@get(
    "/v1/chats/{chat_id:str}/attachments/{attachment_id:str}",
    tags=["messages"],
    opt=declare_bytes(),
)
async def read_attachment(
    request: HubRequest, chat_id: FromPath[str], attachment_id: FromPath[str]
) -> Stream:
    """Download an attachment."""
    hub = services_of(request)
    row = await attachments.find_attachment(
        hub, caller_of(request), clean_id(chat_id), clean_id(attachment_id)
    )
    headers = {
        "content-disposition": attachments.to_disposition(row["name"]),
        "content-length": str(row["bytes"]),
    }
    pieces = attachments.read_content(hub, row)
    return Stream(pieces, media_type="application/octet-stream", headers=headers)


GROUP = RouteGroup(
    handlers=[
        list_messages,
        send_message,
        read_message,
        edit_message,
        recall_message,
        pin_message,
        unpin_message,
        list_pins,
        add_reaction,
        remove_reaction,
        search_messages,
        sync_messages,
        upload_attachment,
        read_attachment,
    ],
    access={
        "viewer": """
            GET /v1/chats/{chat_id}/messages
            GET /v1/chats/{chat_id}/messages/{message_id}
            GET /v1/chats/{chat_id}/pins
            GET /v1/messages/search
            GET /v1/messages/sync
            GET /v1/chats/{chat_id}/attachments/{attachment_id}
        """,
        "member": """
            POST /v1/chats/{chat_id}/messages
            PATCH /v1/chats/{chat_id}/messages/{message_id}
            DELETE /v1/chats/{chat_id}/messages/{message_id}
            POST /v1/chats/{chat_id}/messages/{message_id}/pin
            DELETE /v1/chats/{chat_id}/messages/{message_id}/pin
            POST /v1/chats/{chat_id}/messages/{message_id}/reactions
            DELETE /v1/chats/{chat_id}/messages/{message_id}/reactions/{emoji}
            POST /v1/chats/{chat_id}/attachments
        """,
    },
    codes={
        "agent_not_operated": "the person may not give tasks to an agent that the message mentions",
        "client_msg_id_reused": "another message of the chat has the clientMsgId",
        "content_mismatch": "attachments came with another content type, or the type without them",
        "edit_too_late": "the message is too old to be edited",
        "mention_unknown": "a mention is not the id of a member of the chat",
        "message_empty": "the message has neither a text nor an attachment",
        "message_recalled": "the message was recalled",
        "not_the_sender": "somebody else sent the message",
        "reaction_unusable": "the reaction is empty, too long or has white space",
        "recall_too_late": "the message is too old to be recalled by its sender",
        "search_empty": "the search has no letter or digit",
        "search_too_long": "the search has too many characters",
        "too_many_mentions": "the message mentions too many members",
        "too_many_pins": "the chat has as many pins as it can have",
        "too_many_places": "more than one of before, after and around was given",
        "too_many_reactions": "the message has as many different reactions as it can have",
        "unknown_attachment": "no attachment that the person may use has this id",
        "unknown_message": "no message of the chat has this id",
    },
    ids={"ChatMessage": "messageId", "Attachment": "attachmentId"},
)
