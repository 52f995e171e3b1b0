"""Starting a Hub: its key, its database, its door; closed the other way round.

A Hub that other machines can reach must be behind HTTPS, because people send it passwords: it does
not start otherwise. As long as nobody has an account, each start makes a fresh link for the first
admin; the one before is void then.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic, time
from typing import Final
from urllib.parse import urlsplit

import msgspec

from factwire import __version__
from factwire.hub.hub_app import build_application
from factwire.hub.hub_metrics import HubObserver
from factwire.hub.hub_resources import CreatedInvitation
from factwire.hub.people.accounts import HubServices, invite_first_admin
from factwire.hub.people.hub_tokens import Clock, HubTokens, load_key
from factwire.hub.people.passwords import Passwords
from factwire.hub.records.hub_database import open_database
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.journal.atomic_files import replace_file
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime.configuration import HubSettings
from factwire.serving.access_control import HostPolicy, InsecureStart, is_loopback, load_token
from factwire.serving.asgi import Application
from factwire.serving.http_server import (
    HttpServer,
    address_of,
    build_server_config,
    ensure_data_folder,
    open_listening_socket,
    serve_until_stopped,
)
from factwire.serving.logs import hide_secret, logger
from factwire.serving.request_observing import Tracing

DATABASE_FILE: Final = "hub.db"
URL_FILE: Final = "hub-url"
METRICS_TOKEN_FILE: Final = "hub-metrics-token"  # noqa: S105 - a name, not a token

_log: Final = logger("factwire.hub")


class OpenHub(msgspec.Struct, frozen=True, kw_only=True):
    """A Hub that is ready to serve; `first_admin` has a link that must be shown once."""

    services: HubServices
    application: Application
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
    clock: Clock = time,
) -> AsyncGenerator[HubServices]:
    """The accounts of a data folder, with or without a server beside it; raises `InsecureStart`,
    `DataUnusable` or `RecordsError`.
    """
    await run_disk_work(ensure_data_folder, data)
    key = await run_disk_work(load_key, data)
    async with open_database(database or f"sqlite:{data / DATABASE_FILE}") as records:
        yield HubServices(
            database=records,
            passwords=passwords or Passwords(),
            tokens=HubTokens(key, clock),
            url=url,
            clock=clock,
        )


@asynccontextmanager
async def open_hub(
    data: Path,
    settings: HubSettings,
    *,
    url: str,
    passwords: Passwords | None = None,
    clock: Clock = time,
    timer: Callable[[], float] = monotonic,
) -> AsyncGenerator[OpenHub]:
    """A Hub that people open at `url`."""
    ensure_secure(settings)
    # Behind a proxy, a page of this Hub has an origin that the request itself does not show.
    public = urlsplit(url)
    hosts = (*settings.hosts, public.hostname or settings.host)
    origins = (*settings.origins, f"{public.scheme}://{public.netloc}")
    policy = HostPolicy.build(settings.host, hosts, origins)
    async with open_services(
        data, settings.database, url, passwords=passwords, clock=clock
    ) as services:
        metrics = await run_disk_work(load_token, data, METRICS_TOKEN_FILE)
        first = await invite_first_admin(services, ActionOrigin(via="start", address=""))
        unhide = hide_secret(metrics.token.value)
        try:
            with HubObserver(services, Tracing("factwire.hub")) as observer:
                application = build_application(
                    services,
                    observer,
                    policy,
                    metrics_token=metrics.token.value,
                    proxies=frozenset(settings.proxies),
                    monotonic=timer,
                )
                yield OpenHub(services=services, application=application, first_admin=first)
        finally:
            unhide()


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

            server = HttpServer(build_server_config(hub.application), _log_stop)
            await serve_until_stopped(server, listening, settings.host, greet)
    _log.info("hub_stopped")


async def _log_stop() -> None:
    _log.info("hub_stopping")
