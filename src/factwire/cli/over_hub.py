"""A person's session at a Hub, for commands: kept in the data folder, for this user alone.

`factwire login` opens it. Whatever command needs it gets its token from the client, which renews
it in time. A Hub is spoken to by HTTPS, or on this machine.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec
import typer

from factwire.cli.targets import HUB_VARIABLE, data_folder, hub_client, report_client_errors
from factwire.cli.terminal import ISSUES, CliError, print_note, terminal_safe

if TYPE_CHECKING:
    import httpx

    from factwire.client import HubSession, HubSessions
    from factwire.edge.hub_access import HubRefused

ANSWER_SECONDS: Final = 30.0

HubOption = Annotated[
    str | None,
    typer.Option(
        "--hub",
        envvar=HUB_VARIABLE,
        metavar="URL",
        help="The address of the Hub; the one you signed in to by default.",
    ),
]


def clean_url(url: str) -> str:
    """The address of a Hub as it is kept; ends the command for one that gets no secrets."""
    from factwire.serving.access_control import is_loopback

    parts = urlsplit(url if "//" in url else f"https://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CliError(f"hub_url: expected the address of a Hub, got {terminal_safe(url)}")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise CliError(
            f"tls_required: {terminal_safe(url)} is not on this machine; use https://, so that no "
            "token crosses the network in the clear"
        )
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def open_sessions() -> "HubSessions":
    """The sessions that are kept on this machine; ends the command where there can be none."""
    from factwire.journal.atomic_files import make_private_folder

    with report_client_errors():
        from factwire.client import HubSessions

        folder = Path(data_folder())
        make_private_folder(folder)
        return HubSessions(folder)


async def keep_session(url: str, session: "HubSession | None") -> None:
    """Keep the session at a Hub in the place of the one before; None forgets it."""
    sessions = open_sessions()
    with report_client_errors():
        from factwire.client.async_client import lock_sessions

        lock = await lock_sessions(sessions)
        try:
            sessions.keep(url, session)
        finally:
            sessions.unlock(lock)


def to_session(url: str, signed_in: dict[str, Any]) -> "HubSession":
    """A session as a Hub answers with it."""
    from factwire.client import SignInTokens

    return msgspec.convert(signed_in, SignInTokens).to_session(url)


class HubCalls:
    """Requests to a Hub; a refusal ends the command with its code."""

    def __init__(self, http: "httpx.AsyncClient") -> None:
        self.http = http
        self.headers: dict[str, str] = {}

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """What a Hub answers; None where that is nothing."""
        try:
            return await self.try_call(method, path, body)
        except _refused() as error:
            raise to_cli_error(error) from error

    async def try_call(self, method: str, path: str, body: Any = None) -> Any:
        """The same, where the command goes on after a refusal; raises `HubRefused`."""
        from factwire.edge.hub_access import HubUnreachable, send_request

        content: dict[str, Any] = {} if body is None else {"json": body}
        try:
            answer = await send_request(self.http, method, path, headers=self.headers, **content)
        except HubUnreachable as error:
            url = terminal_safe(str(self.http.base_url))
            raise CliError(
                f"hub_unreachable: {url} does not answer: {terminal_safe(str(error))}"
            ) from error
        return msgspec.json.decode(answer.content) if answer.content else None


def _refused() -> "type[HubRefused]":
    from factwire.edge.hub_access import HubRefused

    return HubRefused


def to_cli_error(error: "HubRefused") -> CliError:
    return CliError(terminal_safe(str(error)), ISSUES)


@asynccontextmanager
async def open_calls(url: str) -> AsyncGenerator[HubCalls]:
    """Requests to a Hub by nobody in particular."""
    try:
        import httpx
    except ModuleNotFoundError as error:
        raise CliError(
            f"missing_extra: this needs {error.name}, which is not installed; install "
            "'factwire[client]'"
        ) from error
    from factwire import __version__

    headers = {"user-agent": f"factwire-cli/{__version__}"}
    async with httpx.AsyncClient(base_url=url, timeout=ANSWER_SECONDS, headers=headers) as http:
        yield HubCalls(http)


@asynccontextmanager
async def open_hub_session(url: str | None) -> AsyncGenerator[HubCalls]:
    """Requests to a Hub by whoever signed in there on this machine."""
    chosen = choose_hub(url)
    async with hub_client(chosen) as hub, open_calls(chosen) as calls:
        calls.headers = (await hub.sender.find_token()).headers
        yield calls


def choose_hub(url: str | None) -> str:
    """The Hub that a command is about; ends the command where that is not clear."""
    if url is not None:
        return clean_url(url)
    with report_client_errors():
        sessions = open_sessions().read()
    if not sessions:
        raise CliError("not_signed_in: sign in with `factwire login URL` first")
    if len(sessions) > 1:
        known = ", ".join(map(terminal_safe, sorted(sessions)))
        raise CliError(f"hub_unclear: name one with --hub: {known}")
    return next(iter(sessions))


class ShownCode(msgspec.Struct, frozen=True, kw_only=True):
    """What a person needs in order to confirm, and how it is waited for."""

    user_code: str
    device_code: str
    link: str
    interval: float


async def begin_authorization(calls: HubCalls, body: dict[str, Any]) -> ShownCode:
    try:
        answer = await calls.try_call("POST", "/v1/device-authorizations", body)
    except _refused() as error:
        if error.code != "unauthenticated":
            raise to_cli_error(error) from error
        # A Hub asks nobody for a token here; an Edge asks everybody.
        url = terminal_safe(str(calls.http.base_url))
        raise CliError(
            f"not_a_hub: {url} is not a Hub but, it seems, an Edge; give the address of a Hub"
        ) from error
    return ShownCode(
        user_code=str(answer["user_code"]),
        device_code=str(answer["device_code"]),
        link=str(answer["verification_uri_complete"]),
        interval=float(answer["interval"]),
    )


def show_code(code: ShownCode, *, with_qr: bool) -> None:
    """Print the code, the link and, for a phone, the link as a QR code."""
    typer.echo(f"Open {terminal_safe(code.link)}")
    typer.echo(f"and confirm the code {terminal_safe(code.user_code)}")
    if with_qr:
        import segno

        segno.make(code.link, error="l", micro=False).terminal(compact=True, border=2)
    print_note("waiting for the confirmation; the code is valid for 5 minutes")


async def collect(calls: HubCalls, code: ShownCode, path: str) -> Any:
    """Poll until somebody has decided; ends the command where they refused, or nobody did."""
    interval = code.interval
    while True:
        try:
            return await calls.try_call("POST", path, {"deviceCode": code.device_code})
        except _refused() as error:
            if error.code == "slow_down":
                interval += code.interval
            elif error.code not in ("authorization_pending", "too_many_requests"):
                raise to_cli_error(error) from error
        await asyncio.sleep(interval)
