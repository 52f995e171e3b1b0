"""`factwire join` and `factwire leave`: the Edge of a data folder and its Hub; and how an Edge that
a Hub has started joins it by itself.

Joining shows a code and waits until somebody who is signed in has confirmed it. The token that the
Hub gives then is written to `hub.json`, where an Edge finds it, also one that is running.
"""

import asyncio
import os
import platform
import socket
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from factwire.cli.over_hub import (
    begin_authorization,
    clean_url,
    collect,
    open_calls,
    show_code,
    to_cli_error,
)
from factwire.cli.targets import load_settings, run_work
from factwire.cli.terminal import DONE, CliError, print_note, terminal_safe

DataOption = Annotated[
    Path | None, typer.Option(help="The Edge's data folder; from the configuration by default.")
]
QrOption = Annotated[
    bool | None,
    typer.Option("--qr/--no-qr", help="Show the link as a QR code too; on a terminal by default."),
]
_REVOKED = "device_token_invalid"

RUNNER_SECRET = "FACTWIRE_RUNNER_SECRET"  # noqa: S105 - the name, not a secret
RUNNER_HUB = "FACTWIRE_HUB_URL"
"""What a Hub tells an Edge that it starts."""


def join(
    url: Annotated[str, typer.Argument(metavar="URL", help="The address of the Hub.")],
    *,
    name: Annotated[
        str | None, typer.Option(help="What to call this machine; its host name by default.")
    ] = None,
    data: DataOption = None,
    qr: QrOption = None,
) -> None:
    """Join a Hub with the Edge of this machine: print a code, and wait until you confirm it there.

    An Edge that is running notices it by itself. Exit code 0: joined. 1: refused or expired. 2: the
    Hub does not answer.
    """
    run_work(_join(clean_url(url), name or socket.gethostname(), data, qr=qr))


async def _join(url: str, name: str, data: Path | None, *, qr: bool | None) -> int:
    from factwire.edge.hub_access import HubTarget, write_target

    configuration = load_settings(Path.cwd(), _flags(data)).configuration
    folder = Path(configuration.data)
    known = _read_target(folder)
    if known is not None and known.url != url:
        raise CliError(
            f"already_joined: this Edge has joined {terminal_safe(known.url)}; run `factwire "
            "leave` first"
        )
    body = _describe_edge(configuration, name)
    async with open_calls(url) as calls:
        code = await begin_authorization(calls, body)
        show_code(code, with_qr=sys.stdout.isatty() if qr is None else qr)
        joined = await collect(calls, code, "/v1/auth/device-token")
    target = HubTarget(url=url, token=str(joined["deviceToken"]), device_id=str(joined["deviceId"]))
    write_target(folder, target)
    person = terminal_safe(str(joined["personName"]))
    print_note(f"joined {terminal_safe(url)} as a device of {person}: {target.device_id}")
    return DONE


def _describe_edge(configuration: Any, name: str) -> dict[str, Any]:
    from factwire import __version__

    return {
        "edgeId": _read_edge_id(Path(configuration.data)),
        "name": name,
        "platform": f"{platform.system()} {platform.machine()}".strip(),
        "version": __version__,
        "agents": _list_agents(configuration),
    }


def join_as_runner(configuration: Any) -> None:
    """Join the Hub that has started this Edge, if one has; the secret for that works once, and is
    out of the environment afterwards.
    """
    secret, url = os.environ.pop(RUNNER_SECRET, ""), os.environ.get(RUNNER_HUB, "")
    if secret:
        asyncio.run(_join_as_runner(configuration, clean_url(url), secret))


async def _join_as_runner(configuration: Any, url: str, secret: str) -> None:
    from factwire.edge.hub_access import (
        HubRefused,
        HubTarget,
        HubUnreachable,
        send_request,
        write_target,
    )

    device = _describe_edge(configuration, "Runner")
    async with open_calls(url) as calls:
        try:
            answer = await send_request(
                calls.http, "POST", "/v1/auth/runner", json={"secret": secret, "device": device}
            )
        except HubRefused as error:
            raise to_cli_error(error) from error
        except HubUnreachable as error:
            raise CliError(f"hub_unreachable: {terminal_safe(str(error))}") from error
    joined = answer.json()
    target = HubTarget(url=url, token=joined["deviceToken"], device_id=joined["deviceId"])
    write_target(Path(configuration.data), target)


def leave(
    *,
    data: DataOption = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Forget the Hub even if it does not answer."),
    ] = False,
) -> None:
    """Leave the Hub: the token of this machine is void, and nothing is uploaded any more.

    What was uploaded stays at the Hub. Exit code 2: the Hub does not answer.
    """
    run_work(_leave(data, force=force))


async def _leave(data: Path | None, *, force: bool) -> int:
    from factwire.edge.hub_access import remove_target

    folder = Path(load_settings(Path.cwd(), _flags(data)).configuration.data)
    target = _read_target(folder)
    if target is None:
        print_note("this Edge has not joined a Hub")
        return DONE
    try:
        await _tell_hub(target)
    except CliError as error:
        if not force:
            raise
        print_note(f"the Hub was not told: {error}")
    remove_target(folder)
    print_note(f"left {terminal_safe(target.url)}")
    return DONE


async def _tell_hub(target: Any) -> None:
    from factwire.edge.hub_access import HubAccess, HubRefused, HubUnreachable, send_request

    async with open_calls(target.url) as calls:
        try:
            token = await HubAccess(target).token(calls.http)
            headers = {"authorization": f"Bearer {token}"}
            await send_request(calls.http, "POST", "/v1/device/leave", headers=headers)
        except HubRefused as error:
            if error.code != _REVOKED:
                raise to_cli_error(error) from error
            print_note("this device had been revoked at the Hub before")
        except HubUnreachable as error:
            raise CliError(
                f"hub_unreachable: {terminal_safe(str(error))}; with --force, this machine forgets "
                "the Hub all the same"
            ) from error


def _flags(data: Path | None) -> list[tuple[str, str]]:
    return [("data", os.path.abspath(data))] if data else []  # noqa: PTH100 - links stay links


def _read_target(folder: Path) -> Any:
    from factwire.edge.hub_access import HubFileUnusable, read_target

    try:
        return read_target(folder)
    except HubFileUnusable as error:
        raise CliError(f"{error.code}: {terminal_safe(str(error))}") from error


def _read_edge_id(folder: Path) -> str:
    """The id of the Edge of a data folder, which is made with the folder."""
    from factwire.edge.startup import edge_id_of
    from factwire.runtime.runtime_identity import IdentityUnusable, open_identity
    from factwire.serving.http_server import DataUnusable, ensure_data_folder

    try:
        ensure_data_folder(folder)
        identity = open_identity(folder)
    except (DataUnusable, IdentityUnusable, OSError) as error:
        raise CliError(f"data_unusable: {terminal_safe(str(error))}") from error
    try:
        return edge_id_of(identity)
    finally:
        identity.release()


def _list_agents(configuration: Any) -> list[str]:
    from factwire.runtime.agents import register

    return sorted(register(configuration).agents)
