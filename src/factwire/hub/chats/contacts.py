"""Friends: people who have agreed to be found in each other's lists.

A stranger can be looked up by the exact name alone, a few times a minute, and never listed. Whoever
is asked decides; until then the request can be withdrawn. Both sides are told of everything, on all
of their screens. The answer to a request about somebody who is disabled, or about nobody, is the
same.
"""

from typing import Any, Literal

from sqlalchemy import delete, func, insert, select
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.chat_resources import FoundPerson, Friend, PendingFriendRequest
from factwire.hub.device_resources import StatePage
from factwire.hub.frames.event_log import HubChange, read_cursor
from factwire.hub.frames.frame_types import (
    FriendAccepted,
    FriendRemoved,
    FriendRequest,
    FriendRequestEnded,
)
from factwire.hub.hub_resources import HubPage
from factwire.hub.limits import FRIEND_REQUESTS, FRIENDS
from factwire.hub.people.accounts import HubCaller, HubServices, new_id
from factwire.hub.people.passwords import name_key
from factwire.hub.records import people_records
from factwire.hub.records.chat_tables import friend_requests, friendships
from factwire.hub.records.hub_tables import people
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.hub.records.people_records import fetch_page, format_time
from factwire.serving.asgi import Problem

RequestDirection = Literal["in", "out"]

_sender = people.alias("sender")
_receiver = people.alias("receiver")


async def look_up(hub: HubServices, name: str) -> HubPage[FoundPerson]:
    """Who has exactly this name, if somebody has who may sign in."""
    async with hub.database.read() as connection:
        row = await people_records.find_by_name(connection, name_key(name))
    if row is None or row["disabled_at"] is not None:
        return HubPage(items=[])
    return HubPage(items=[FoundPerson(person_id=row["person_id"], name=row["name"])])


def unknown_person() -> Problem:
    return Problem(404, "unknown_person", "nobody that you could reach has this name or id")


async def list_friends(
    hub: HubServices, caller: HubCaller, cursor: str | None, limit: int
) -> StatePage[Friend]:
    query = (
        select(friendships, people.c.name)
        .join(people, people.c.person_id == friendships.c.friend_id)
        .where(friendships.c.person_id == caller.person_id)
    )
    by = (friendships.c.created_at, friendships.c.friend_id)
    async with hub.database.read() as connection:
        rows, following = await fetch_page(connection, query, by, cursor, limit)
        as_of = await read_cursor(connection)
    return StatePage(items=[_to_friend(row) for row in rows], as_of=as_of, next=following)


def _to_friend(row: RowMapping) -> Friend:
    return Friend(
        friendship_id=row["friendship_id"],
        person_id=row["friend_id"],
        name=row["name"],
        created_at=format_time(row["created_at"]),
    )


async def are_friends(connection: AsyncConnection, person_id: str, friend_ids: set[str]) -> bool:
    """Whether somebody is friends with all of these."""
    query = select(func.count()).where(
        friendships.c.person_id == person_id, friendships.c.friend_id.in_(friend_ids)
    )
    return (await connection.execute(query)).scalar_one() == len(friend_ids)


def _select_requests() -> Any:
    return (
        select(
            friend_requests, _sender.c.name.label("from_name"), _receiver.c.name.label("to_name")
        )
        .join(_sender, _sender.c.person_id == friend_requests.c.from_id)
        .join(_receiver, _receiver.c.person_id == friend_requests.c.to_id)
    )


def _to_request(row: RowMapping) -> PendingFriendRequest:
    return PendingFriendRequest(
        request_id=row["request_id"],
        from_person_id=row["from_id"],
        from_name=row["from_name"],
        to_person_id=row["to_id"],
        to_name=row["to_name"],
        message=row["message"],
        created_at=format_time(row["created_at"]),
    )


async def list_requests(
    hub: HubServices,
    caller: HubCaller,
    direction: RequestDirection,
    cursor: str | None,
    limit: int,
) -> StatePage[PendingFriendRequest]:
    """Requests to somebody or from them that nobody has answered."""
    side = {"in": friend_requests.c.to_id, "out": friend_requests.c.from_id}[direction]
    query = _select_requests().where(side == caller.person_id)
    by = (friend_requests.c.created_at, friend_requests.c.request_id)
    async with hub.database.read() as connection:
        rows, following = await fetch_page(connection, query, by, cursor, limit)
        as_of = await read_cursor(connection)
    return StatePage(items=[_to_request(row) for row in rows], as_of=as_of, next=following)


async def send_request(
    hub: HubServices, caller: HubCaller, person_id: str, message: str
) -> PendingFriendRequest:
    """Ask somebody; the same again is the request that waits already. Raises `Problem`."""
    try:
        async with hub.events.change() as change:
            return await _send_request(change, caller, person_id, message)
    except IntegrityError:
        # Two of the same at once: the other one is there now.
        async with hub.events.change() as change:
            return await _send_request(change, caller, person_id, message)


async def _send_request(
    change: HubChange, caller: HubCaller, person_id: str, message: str
) -> PendingFriendRequest:
    connection = change.connection
    person = await people_records.find_person(connection, person_id)
    if person is None or person["disabled_at"] is not None or person_id == caller.person_id:
        raise unknown_person()
    if await are_friends(connection, caller.person_id, {person_id}):
        raise Problem(409, "already_friends", "you are friends with this person already")
    existing = await _find_between(connection, caller.person_id, person_id)
    if existing is not None:
        return _to_request(existing)
    if await _find_between(connection, person_id, caller.person_id) is not None:
        raise Problem(409, "request_waiting", "this person has asked you; accept their request")
    waiting = select(func.count()).where(friend_requests.c.from_id == caller.person_id)
    if (await connection.execute(waiting)).scalar_one() >= FRIEND_REQUESTS:
        raise Problem(
            409,
            "too_many_friend_requests",
            f"{FRIEND_REQUESTS} of your requests wait; withdraw one",
        )
    await connection.execute(
        insert(friend_requests).values(
            request_id=new_id("frq"),
            from_id=caller.person_id,
            to_id=person_id,
            message=message,
            created_at=change.now,
        )
    )
    row = await _find_between(connection, caller.person_id, person_id)
    if row is None:
        raise unknown_person()
    frame = FriendRequest(
        request_id=row["request_id"],
        from_user_id=row["from_id"],
        message=row["message"],
        from_name=row["from_name"],
        to_user_id=row["to_id"],
        to_name=row["to_name"],
        created_at=format_time(row["created_at"]),
    )
    for person in (person_id, caller.person_id):
        change.tell(person, "friend.request", frame)
    return _to_request(row)


async def _find_between(connection: AsyncConnection, from_id: str, to_id: str) -> RowMapping | None:
    query = _select_requests().where(
        friend_requests.c.from_id == from_id, friend_requests.c.to_id == to_id
    )
    return (await connection.execute(query)).mappings().one_or_none()


async def accept_request(
    hub: HubServices, caller: HubCaller, request_id: str, origin: ActionOrigin
) -> Friend:
    """Become friends with who asked; raises `Problem`."""
    async with hub.events.change() as change:
        connection = change.connection
        row = await _take_request(connection, request_id, to_id=caller.person_id)
        for side in (row["from_id"], row["to_id"]):
            count = select(func.count()).where(friendships.c.person_id == side)
            if (await connection.execute(count)).scalar_one() >= FRIENDS:
                raise Problem(409, "too_many_friends", f"one of you has {FRIENDS} friends")
        friendship_id = new_id("frd")
        pairs = ((row["from_id"], row["to_id"]), (row["to_id"], row["from_id"]))
        for person_id, friend_id in pairs:
            await connection.execute(
                insert(friendships).values(
                    person_id=person_id,
                    friend_id=friend_id,
                    friendship_id=friendship_id,
                    created_at=change.now,
                )
            )
        names = {row["from_id"]: row["from_name"], row["to_id"]: row["to_name"]}
        at = format_time(change.now)
        for person_id, friend_id in pairs:
            frame = FriendAccepted(
                friendship_id=friendship_id,
                user_id=friend_id,
                name=names[friend_id],
                created_at=at,
            )
            change.tell(person_id, "friend.accepted", frame)
        await add_audit_entry(connection, change.now, "friend.accepted", origin, row["from_id"])
    return Friend(
        friendship_id=friendship_id,
        person_id=row["from_id"],
        name=row["from_name"],
        created_at=at,
    )


async def _take_request(connection: AsyncConnection, request_id: str, *, to_id: str) -> RowMapping:
    """Remove a request to somebody, whom it then is for to be answered; raises `Problem`."""
    query = _select_requests().where(
        friend_requests.c.request_id == request_id, friend_requests.c.to_id == to_id
    )
    row = (await connection.execute(query)).mappings().one_or_none()
    gone = await connection.execute(
        delete(friend_requests).where(
            friend_requests.c.request_id == request_id, friend_requests.c.to_id == to_id
        )
    )
    if row is None or gone.rowcount != 1:
        raise _unknown_request()
    return row


async def end_request(hub: HubServices, caller: HubCaller, request_id: str) -> None:
    """Refuse a request, or withdraw one of one's own; raises `Problem`."""
    async with hub.events.change() as change:
        own = (friend_requests.c.from_id == caller.person_id) | (
            friend_requests.c.to_id == caller.person_id
        )
        gone = await change.connection.execute(
            delete(friend_requests)
            .where(friend_requests.c.request_id == request_id, own)
            .returning(friend_requests.c.from_id, friend_requests.c.to_id)
        )
        sides = gone.first()
        if sides is None:
            raise _unknown_request()
        for person_id in sides:
            ended = FriendRequestEnded(request_id=request_id)
            change.tell(person_id, "friend.request_ended", ended)


def _unknown_request() -> Problem:
    return Problem(404, "unknown_friend_request", "no request of yours waits under this id")


async def remove_friend(
    hub: HubServices, caller: HubCaller, person_id: str, origin: ActionOrigin
) -> None:
    """Be friends no more; what was said stays, and nothing can be added to it. Raises `Problem`."""
    async with hub.events.change() as change:
        pair = caller.person_id, person_id
        # In one order for both sides, so that neither waits for the other.
        sides = sorted((pair, pair[::-1]))
        removed: dict[str, str] = {}
        for one, other in sides:
            gone = await change.connection.execute(
                delete(friendships)
                .where(friendships.c.person_id == one, friendships.c.friend_id == other)
                .returning(friendships.c.friendship_id)
            )
            found = gone.scalar_one_or_none()
            if found is None:
                raise Problem(404, "unknown_friend", "none of your friends has this id")
            removed[one] = found
        for one, other in sides:
            frame = FriendRemoved(friendship_id=removed[one], user_id=other)
            change.tell(one, "friend.removed", frame)
        await add_audit_entry(change.connection, change.now, "friend.removed", origin, person_id)
