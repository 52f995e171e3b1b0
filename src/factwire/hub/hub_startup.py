"""Starting a Hub: its key, its database, its door; closed the other way round.

A Hub that other machines can reach must be behind HTTPS, because people send it passwords: it does
not start otherwise. As long as nobody has an account, each start makes a fresh link for the first
admin; the one before is void then.
"""

import fcntl
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import monotonic, time
from typing import Final
from urllib.parse import urlsplit

import msgspec

from factwire import __version__
from factwire.hub.approvals.approval_decisions import expire_overdue, note_delivery
from factwire.hub.approvals.approval_follower import ApprovalFollower
from factwire.hub.approvals.approval_link import (
    EdgeDecisions,
    LinkOutbox,
    RelayedCards,
    note_acknowledgement,
    note_begun,
    note_loss,
)
from factwire.hub.approvals.approval_records import (
    find_deciders,
    select_lost_overdue,
    select_open_overdue,
)
from factwire.hub.approvals.approval_resources import ApprovalLinks
from factwire.hub.chats.attachments import run_daily_collection
from factwire.hub.chats.chat_links import ChatLinks
from factwire.hub.frames.event_log import EventLog
from factwire.hub.frames.hub_connections import HubConnections
from factwire.hub.hub_app import build_application
from factwire.hub.hub_metrics import HubObserver
from factwire.hub.hub_resources import CreatedInvitation
from factwire.hub.link.chat_tasks import ChatTasks, keep_chat_current
from factwire.hub.link.edge_link import EdgeLink, Overdue
from factwire.hub.link.hub_links import HubLinks, build_links, run_links
from factwire.hub.link.runner_keeper import RunnerKeeper
from factwire.hub.mirror.hub_mirrors import HubMirrors
from factwire.hub.mirror.mirror_followers import MirrorFollowers
from factwire.hub.notifications.channel_senders import ChannelSenders
from factwire.hub.notifications.notification_sender import NotificationSender
from factwire.hub.notifications.notification_targets import senders_of
from factwire.hub.notifications.web_push import VapidKey
from factwire.hub.people.accounts import HubServices, invite_first_admin
from factwire.hub.people.hub_tokens import Clock, HubTokens, load_key
from factwire.hub.people.identity_providers import IdentityProviders, build_providers
from factwire.hub.people.passwords import Passwords
from factwire.hub.record_retention import run_retention
from factwire.hub.records.hub_database import open_database
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.hub.request_rates import RequestRates
from factwire.hub.teams.assignment_merges import note_merge
from factwire.hub.teams.team_journal import TeamKeeper
from factwire.journal.atomic_files import replace_file
from factwire.journal.blobs import FileBlobs
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.configuration import HubSettings
from factwire.serving.access_control import HostPolicy, InsecureStart, is_loopback, load_token
from factwire.serving.asgi import Application
from factwire.serving.http_server import (
    DataUnusable,
    HttpServer,
    address_of,
    build_server_config,
    ensure_data_folder,
    open_listening_socket,
    serve_until_stopped,
)
from factwire.serving.logs import hide_secret, logger
from factwire.serving.outgoing_requests import OutgoingHttp
from factwire.serving.request_observing import Tracing

DATABASE_FILE: Final = "hub.db"
URL_FILE: Final = "hub-url"
LOCK_FILE: Final = "hub-lock"
_LOCK_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
ATTACHMENTS_FOLDER: Final = "attachments"
METRICS_TOKEN_FILE: Final = "hub-metrics-token"  # noqa: S105 - a name, not a token

_log: Final = logger("factwire.hub")


class OpenHub(msgspec.Struct, frozen=True, kw_only=True):
    """A Hub that is ready to serve; `first_admin` has a link that must be shown once."""

    services: HubServices
    links: HubLinks
    application: Application
    sender: NotificationSender
    runners: RunnerKeeper
    teams: TeamKeeper
    first_admin: CreatedInvitation | None


def ensure_secure(settings: HubSettings) -> None:
    """Raise `InsecureStart` for settings with which nobody should serve."""
    if is_loopback(settings.host) or (settings.url or "").startswith("https://"):
        return
    raise InsecureStart(
        "tls_required",
        f"{settings.host} is reachable from other machines, and passwords must not cross a network "
        "without HTTPS; name the HTTPS address of your reverse proxy with --url, or listen on "
        "127.0.0.1",
    )


def read_public_url(data: Path, settings: HubSettings) -> str:
    """Where people open a Hub: as it is set, else where the Hub of a data folder listened last."""
    if settings.url is not None:
        return settings.url.rstrip("/")
    try:
        return (data / URL_FILE).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return address_of(settings.host, settings.port)


@asynccontextmanager
async def open_services(
    data: Path,
    database: str | None,
    url: str,
    *,
    passwords: Passwords | None = None,
    providers: IdentityProviders | None = None,
    clock: Clock = time,
    timer: Callable[[], float] = monotonic,
    settings: HubSettings | None = None,
    http: OutgoingHttp | None = None,
    approvals: ApprovalLinks | None = None,
) -> AsyncGenerator[HubServices]:
    """The records of a data folder, with or without a server beside it; without `settings`, nothing
    is sent to anybody. Raises `InsecureStart`, `DataUnusable` or `RecordsError`.
    """
    await run_disk_work(ensure_data_folder, data)
    key = await run_disk_work(load_key, data)
    async with open_database(database or f"sqlite:{data / DATABASE_FILE}") as records:
        events = EventLog(records, clock)
        tokens = HubTokens(key, clock)
        vapid = VapidKey(tokens.derive_secret("vapid"))
        yield HubServices(
            database=records,
            passwords=passwords or Passwords(),
            tokens=tokens,
            events=events,
            connections=HubConnections(records, events, clock),
            url=url,
            providers=providers or IdentityProviders(),
            attachments=FileBlobs(data / ATTACHMENTS_FOLDER),
            approvals=approvals
            or ApprovalLinks(
                deciders=find_deciders,
                required=1 if settings is None else settings.approvals_required,
            ),
            senders=None if settings is None else ChannelSenders(settings, url, vapid, http),
            clock=clock,
            rates=RequestRates(timer),
        )


def lock_data_folder(data: Path) -> int:
    """A descriptor that keeps other Hubs off a folder until it is closed, or its process ends;
    raises `DataUnusable`.
    """
    ensure_data_folder(data)
    try:
        lock = os.open(
            data / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
    except OSError as error:
        raise DataUnusable(data, f"{LOCK_FILE} cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise DataUnusable(data, "another Hub is using this folder") from None
    return lock


@asynccontextmanager
async def hold_data_folder(data: Path, database: str | None) -> AsyncGenerator[None]:
    """Keep other Hubs off a data folder; processes of one Hub on PostgreSQL share theirs."""
    if database is not None and not database.startswith("sqlite:"):
        yield
        return
    lock = await run_disk_work(lock_data_folder, data)
    try:
        yield
    finally:
        os.close(lock)


@asynccontextmanager
async def open_hub(
    data: Path,
    settings: HubSettings,
    *,
    url: str,
    passwords: Passwords | None = None,
    clock: Clock = time,
    timer: Callable[[], float] = monotonic,
    chat_links: ChatLinks | None = None,
    http: OutgoingHttp | None = None,
    approvals: ApprovalLinks | None = None,
) -> AsyncGenerator[OpenHub]:
    """A Hub that people open at `url`; `http` and `approvals` are how it reaches others. Raises
    what `open_services` does, also where another Hub uses the data folder.
    """
    ensure_secure(settings)
    # Behind a proxy, a page of this Hub has an origin that the request itself does not show.
    public = urlsplit(url)
    hosts = (*settings.hosts, public.hostname or settings.host)
    origins = (*settings.origins, f"{public.scheme}://{public.netloc}")
    policy = HostPolicy.build(settings.host, hosts, origins)
    async with (
        hold_data_folder(data, settings.database),
        open_services(
            data,
            settings.database,
            url,
            passwords=passwords,
            providers=build_providers(settings.oidc, os.environ, clock),
            clock=clock,
            timer=timer,
            settings=settings,
            http=http,
            approvals=approvals,
        ) as accounts,
        HubMirrors(data, accounts.database, accounts.now) as mirrors,
    ):
        services = msgspec.structs.replace(
            accounts, mirrors=mirrors, chat_links=chat_links or ChatTasks()
        )
        links = build_links(services, services.connections, mirrors, keep_chat_current)
        services = connect_approvals(services, links.link)
        mirrors.decide_by(EdgeDecisions(services, links.link))
        metrics = await run_disk_work(load_token, data, METRICS_TOKEN_FILE)
        first = await invite_first_admin(services, ActionOrigin(via="start", address=""))
        unhide = hide_secret(metrics.token.value)
        try:
            with HubObserver(services, Tracing("factwire.hub")) as observer:
                runners = RunnerKeeper(services, settings, data)
                application = build_application(
                    services,
                    mirrors,
                    links,
                    observer,
                    policy,
                    runners=runners,
                    metrics_token=metrics.token.value,
                    proxies=frozenset(settings.proxies),
                    token_in_url=settings.token_in_url,
                    monotonic=timer,
                )
                sender = NotificationSender(services, senders_of(services), note_delivery)
                keeper = TeamKeeper(services, mirrors.store, data)
                async with (
                    # Before old events are removed, what was not written of them yet is.
                    keeper.run(),
                    services.connections.run(event_days=settings.event_days),
                    run_retention(services.database, services.now, settings.record_days),
                    run_links(links),
                    run_daily_collection(services),
                    follow_approvals(services, mirrors),
                    sender.run(),
                    runners.run(),
                ):
                    yield OpenHub(
                        services=services,
                        links=links,
                        application=application,
                        sender=sender,
                        runners=runners,
                        teams=keeper,
                        first_admin=first,
                    )
        finally:
            unhide()


def connect_approvals(hub: HubServices, link: EdgeLink) -> HubServices:
    """The services of a Hub whose decisions and cards go over its link, unless it has others."""
    link.on_decision.append(note_acknowledgement)
    link.on_decision_lost.append(note_loss)
    link.on_begun.append(note_begun)
    link.on_answer.append(note_merge)
    own = hub.approvals
    outbox = own.outbox or LinkOutbox()
    expire = partial(expire_overdue, outbox)
    link.overdue += [Overdue(select_open_overdue, expire), Overdue(select_lost_overdue, expire)]
    connected = msgspec.structs.replace(
        own,
        outbox=outbox,
        cards=own.cards or RelayedCards(hub.events, link, hub.connections),
    )
    return msgspec.structs.replace(hub, approvals=connected)


@asynccontextmanager
async def follow_approvals(hub: HubServices, mirrors: HubMirrors) -> AsyncGenerator[None]:
    """Read what agents ask off the mirrors for as long as the block lasts."""
    follower = ApprovalFollower(hub.approvals.deciders, hub.approvals.required)
    followers = MirrorFollowers(mirrors.store, hub.database, hub.events, [follower])
    mirrors.on_upload.append(lambda edge_id, _: followers.note_upload(edge_id))
    async with followers.run():
        yield


async def serve(data: Path, settings: HubSettings, ready: Callable[[OpenHub, str], None]) -> None:
    """Serve until a signal comes; raises `InsecureStart`, `AddressUnusable`, `DataUnusable` or
    `RecordsError`.
    """
    ensure_secure(settings)
    with open_listening_socket(settings.host, settings.port) as listening:
        own = address_of(settings.host, listening.getsockname()[1])
        url = (settings.url or own).rstrip("/")
        async with open_hub(data, settings, url=url) as hub:
            await run_disk_work(replace_file, data / URL_FILE, f"{url}\n".encode())

            def greet(address: str) -> None:
                _log.info("hub_started", address=address, version=__version__)
                ready(hub, address)

            async def close_sockets() -> None:
                _log.info("hub_stopping")
                await hub.services.connections.close()

            server = HttpServer(build_server_config(hub.application), close_sockets)
            await serve_until_stopped(server, listening, settings.host, greet)
    _log.info("hub_stopped")
