"""Chats and their members."""

from litestar import delete, get, patch, post
from litestar.params import FromPath, JSONBody
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED, HTTP_204_NO_CONTENT

from factwire.hub.chat_resources import (
    AgentBody,
    Chat,
    ChatBody,
    ChatChange,
    ChatParticipant,
    PeopleBody,
    ReadBody,
)
from factwire.hub.chats import chat_members, chat_messages
from factwire.hub.device_resources import StatePage
from factwire.hub.routes.hub_requests import (
    HubRequest,
    RouteGroup,
    caller_of,
    clean_id,
    id_from_key,
    origin_of,
    services_of,
)
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit


@get("/v1/chats", tags=["chats"])
async def list_chats(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> StatePage[Chat]:
    """List your chats, those you joined last first."""
    return await chat_members.list_chats(services_of(request), caller_of(request), after, limit)


@post("/v1/chats", status_code=HTTP_201_CREATED, tags=["chats"])
async def open_chat(request: HubRequest, data: JSONBody[ChatBody]) -> Chat:
    """Create a group, or open the chat with a friend or that of a mirrored thread, of which there
    is one each.
    """
    return await chat_members.open_chat(
        services_of(request),
        caller_of(request),
        data,
        origin_of(request),
        id_from_key(request, "ses"),
    )


@get("/v1/chats/{chat_id:str}", tags=["chats"])
async def read_chat(request: HubRequest, chat_id: FromPath[str]) -> Chat:
    """Get a chat that you are in."""
    return await chat_members.read_chat(services_of(request), caller_of(request), clean_id(chat_id))


@patch("/v1/chats/{chat_id:str}", tags=["chats"])
async def change_chat(
    request: HubRequest, chat_id: FromPath[str], data: JSONBody[ChatChange]
) -> Chat:
    """Rename or describe a group that is yours, or hand it over to another member."""
    return await chat_members.change_chat(
        services_of(request), caller_of(request), clean_id(chat_id), data, origin_of(request)
    )


@delete("/v1/chats/{chat_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["chats"])
async def dissolve_chat(request: HubRequest, chat_id: FromPath[str]) -> None:
    """Dissolve a group that is yours; nobody can read it after that."""
    await chat_members.dissolve_chat(
        services_of(request), caller_of(request), clean_id(chat_id), origin_of(request)
    )


@post("/v1/chats/{chat_id:str}/leave", status_code=HTTP_204_NO_CONTENT, tags=["chats"])
async def leave_chat(request: HubRequest, chat_id: FromPath[str]) -> None:
    """Leave a group or the chat of a thread. When the owner leaves a group, the person who has been
    in it the longest becomes its owner; when nobody is left, it is dissolved.
    """
    await chat_members.leave_chat(
        services_of(request), caller_of(request), clean_id(chat_id), origin_of(request)
    )


@post("/v1/chats/{chat_id:str}/read", status_code=HTTP_200_OK, tags=["chats"])
async def mark_chat_read(
    request: HubRequest, chat_id: FromPath[str], data: JSONBody[ReadBody]
) -> Chat:
    """Mark everything up to a message as read; the mark never goes back."""
    return await chat_messages.mark_read(
        services_of(request), caller_of(request), clean_id(chat_id), data.seq_id
    )


@get("/v1/chats/{chat_id:str}/members", tags=["chats"])
async def list_chat_members(
    request: HubRequest, chat_id: FromPath[str], after: After = None, limit: Limit = DEFAULT_LIMIT
) -> StatePage[ChatParticipant]:
    """List the people and agents of a chat, in the order in which they joined."""
    return await chat_members.list_members(
        services_of(request), caller_of(request), clean_id(chat_id), after, limit
    )


@post("/v1/chats/{chat_id:str}/members", status_code=HTTP_200_OK, tags=["chats"])
async def add_chat_people(
    request: HubRequest, chat_id: FromPath[str], data: JSONBody[PeopleBody]
) -> Chat:
    """Add friends of yours to a group that is yours. They can read all that was said in it."""
    return await chat_members.add_people(
        services_of(request),
        caller_of(request),
        clean_id(chat_id),
        [clean_id(each) for each in data.person_ids],
        origin_of(request),
    )


@post("/v1/chats/{chat_id:str}/agents", status_code=HTTP_201_CREATED, tags=["chats"])
async def add_chat_agent(
    request: HubRequest, chat_id: FromPath[str], data: JSONBody[AgentBody]
) -> ChatParticipant:
    """Add an agent of a device that you may operate; `@` and its name in a message gives it a
    task.
    """
    return await chat_members.add_agent(
        services_of(request), caller_of(request), clean_id(chat_id), data, origin_of(request)
    )


@delete(
    "/v1/chats/{chat_id:str}/members/{member_id:str}",
    status_code=HTTP_204_NO_CONTENT,
    tags=["chats"],
)
async def remove_chat_member(
    request: HubRequest, chat_id: FromPath[str], member_id: FromPath[str]
) -> None:
    """Remove somebody from a group that is yours, or an agent that you added."""
    await chat_members.remove_member(
        services_of(request),
        caller_of(request),
        clean_id(chat_id),
        clean_id(member_id),
        origin_of(request),
    )


GROUP = RouteGroup(
    handlers=[
        list_chats,
        open_chat,
        read_chat,
        change_chat,
        dissolve_chat,
        leave_chat,
        mark_chat_read,
        list_chat_members,
        add_chat_people,
        add_chat_agent,
        remove_chat_member,
    ],
    access={
        "viewer": """
            GET /v1/chats
            GET /v1/chats/{chat_id}
            POST /v1/chats/{chat_id}/leave
            POST /v1/chats/{chat_id}/read
            GET /v1/chats/{chat_id}/members
        """,
        "member": """
            POST /v1/chats
            PATCH /v1/chats/{chat_id}
            DELETE /v1/chats/{chat_id}
            POST /v1/chats/{chat_id}/members
            POST /v1/chats/{chat_id}/agents
            DELETE /v1/chats/{chat_id}/members/{member_id}
        """,
    },
    codes={
        "agents_unavailable": "this Hub cannot give tasks to agents",
        "chat_full": "the chat has as many people or agents as it can have",
        "not_a_group": "a private chat or that of a thread cannot be changed like this",
        "not_friends": "the two people of the private chat are friends no more",
        "owner_only": "only the owner of the group may send the request",
        "read_only_thread": "the thread of the chat is shared with the person to read only",
        "too_many_chats": "somebody is in as many chats as they can be",
        "unknown_chat": "no chat of the person has this id",
        "unknown_device": "no device that the person may use has this id",
        "unknown_member": "no member of the chat has this id",
    },
    ids={"Chat": "chatId", "ChatParticipant": "memberId"},
    listed={"ChatPage": "chatId"},
)
