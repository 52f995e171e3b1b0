"""`HubLinks`: the link of a Hub to its Edges, opened whole and closed whole."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from factwire.hub.link.agent_tasks import AgentMessages
from factwire.hub.link.edge_link import DeviceSockets, EdgeLink
from factwire.hub.link.relay import EdgeRelay
from factwire.hub.link.task_streams import TaskStreams
from factwire.hub.mirror.hub_mirrors import HubMirrors
from factwire.hub.people.accounts import HubServices


class HubLinks(msgspec.Struct, frozen=True, kw_only=True):
    """Deliveries and what Edges say, what agents do, and requests that are passed on."""

    link: EdgeLink
    streams: TaskStreams
    relay: EdgeRelay


def build_links(
    hub: HubServices,
    sockets: DeviceSockets,
    mirrors: HubMirrors,
    messages: AgentMessages | None = None,
) -> HubLinks:
    """The link over the sockets and the mirrors of a Hub; `messages` keeps chats current."""
    streams = TaskStreams(
        hub.database, hub.events, mirrors.store, clock=hub.clock, messages=messages
    )
    link = EdgeLink(
        hub.database,
        hub.events,
        sockets,
        clock=hub.clock,
        follower=streams,
        messages=messages,
    )
    relay = EdgeRelay(hub.database, hub.events, link, sockets, mirrors.store)
    mirrors.relay_through(relay)
    return HubLinks(link=link, streams=streams, relay=relay)


@asynccontextmanager
async def run_links(links: HubLinks) -> AsyncGenerator[None]:
    """Keep the link open for as long as the block lasts."""
    async with links.streams.run(), links.link.run():
        yield
