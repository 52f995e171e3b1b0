"""Setting a stream up so that an acknowledged item stays: files, replicas, nothing ever dropped.

The server removes nothing by itself: no limit on age, number or size, and a stream that is full
refuses what is new instead of dropping what is old.
"""

from typing import Any, Final

from factwire.journal.errors import JournalUrlError
from factwire.journal.nats.link import Link, Refused
from factwire.journal.nats.log import API, Log, unusable

_IN_USE: Final = 10058


async def set_up(
    link: Link, log: Log, replicas: int | None, hints: str | None = None
) -> dict[str, Any]:
    """Create the stream of a log, or find it; answers its configuration as the server has it.

    `hints` is a subject on which the server says of each message that it was stored.
    """
    wanted = _settings(log, replicas or 1, hints)
    info = await log.info()
    if info is None:
        try:
            info = await link.ask(f"{API}.STREAM.CREATE.{log.stream}", wanted)
        except Refused as error:
            if error.number != _IN_USE:
                raise unusable(log.stream, error) from error
            info = await log.info() or {"config": {}}
    found: dict[str, Any] = info["config"]
    if found.get("subjects") != wanted["subjects"]:
        raise JournalUrlError(
            f"the stream {log.stream!r} is there and is no journal; choose another name"
        )
    if replicas is not None and found.get("num_replicas") != replicas:
        return await _update(link, log, {**found, "num_replicas": replicas})
    return found


def _settings(log: Log, replicas: int, hints: str | None) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "name": log.stream,
        "subjects": [f"{log.subject}.*"],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "num_replicas": replicas,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_age": 0,
        "max_msg_size": -1,
        "allow_direct": True,
        "allow_atomic": True,
    }
    if hints is not None:
        republish = {"src": f"{log.subject}.*", "dest": hints, "headers_only": True}
        settings["republish"] = republish
    return settings


async def _update(link: Link, log: Log, config: dict[str, Any]) -> dict[str, Any]:
    try:
        made = await link.ask(f"{API}.STREAM.UPDATE.{log.stream}", config)
    except Refused as error:
        raise unusable(log.stream, error) from error
    return made["config"]
