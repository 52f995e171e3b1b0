"""`factwire login`, `logout`, `devices` and `tasks`: a person's own session at a Hub, their
machines, and what they have given to agents there.

By default `login` shows a code that is confirmed on a screen that is signed in, so that no password
is typed in a terminal. The session is kept in the data folder; no command ever prints a token.
"""

import getpass
import socket
import sys
from typing import Annotated, Any, Final

import msgspec
import typer

from factwire.cli.join_command import QrOption
from factwire.cli.over_hub import (
    HubOption,
    begin_authorization,
    choose_hub,
    clean_url,
    collect,
    keep_session,
    open_calls,
    open_hub_session,
    show_code,
    to_session,
)
from factwire.cli.targets import format_minute, hub_client, run_work
from factwire.cli.terminal import DONE, CliError, print_note, terminal_safe
from factwire.facts.resources import AgentTask, TaskStatus
from factwire.facts.status_words import DEVICE_WORDS, TASK_WORDS

devices = typer.Typer(
    name="devices",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DeviceArgument = Annotated[str, typer.Argument(metavar="DEVICE", help="The id of the device.")]
UserCode = Annotated[str, typer.Argument(metavar="CODE", help="The code that is shown.")]


def login(
    url: Annotated[str, typer.Argument(metavar="URL", help="The address of the Hub.")],
    *,
    name: Annotated[
        str | None,
        typer.Option(help="Sign in with this name and a password, which is asked for."),
    ] = None,
    qr: QrOption = None,
) -> None:
    """Sign in to a Hub, by a code that you confirm on a screen where you are signed in.

    Exit code 0: signed in. 1: refused or expired. 2: the Hub does not answer.
    """
    run_work(_login(clean_url(url), name, qr=qr))


async def _login(url: str, name: str | None, *, qr: bool | None) -> int:
    async with open_calls(url) as calls:
        if name is None:
            body = {"name": f"terminal on {socket.gethostname()}"[:64]}
            code = await begin_authorization(calls, body)
            show_code(code, with_qr=sys.stdout.isatty() if qr is None else qr)
            answer = await collect(calls, code, "/v1/auth/session-token")
        else:
            password = _ask_password()
            body = {"name": name, "password": password}
            answer = await calls.call("POST", "/v1/auth/login", body)
    session = to_session(url, answer)
    await keep_session(url, session)
    print_note(f"signed in to {terminal_safe(url)} as {terminal_safe(session.person)}")
    return DONE


def _ask_password() -> str:
    """A password from the keyboard, or a line of standard input where that is no terminal."""
    if sys.stdin.isatty():
        return getpass.getpass("Password: ")
    return sys.stdin.readline().rstrip("\n")


def logout(*, hub: HubOption = None) -> None:
    """Sign out of a Hub, and forget the session on this machine."""
    run_work(_logout(hub))


async def _logout(hub: str | None) -> int:
    url = choose_hub(hub)
    try:
        async with open_hub_session(url) as calls:
            await calls.call("POST", "/v1/auth/logout")
    except CliError as error:
        # Here the session is forgotten all the same.
        print_note(f"the Hub was not told: {error}")
    await keep_session(url, None)
    print_note(f"signed out of {terminal_safe(url)}")
    return DONE


@devices.callback()
def list_devices(context: typer.Context, *, hub: HubOption = None, as_json: AsJson = False) -> None:
    """List your devices at a Hub, and those that are shared with you, newest first."""
    if context.invoked_subcommand is None:
        run_work(_list_devices(hub, as_json=as_json))


async def _list_devices(hub: str | None, *, as_json: bool) -> int:
    rows: list[dict[str, Any]] = []
    async with open_hub_session(hub) as calls:
        after = ""
        while True:
            page = await calls.call("GET", f"/v1/devices?limit=100{after}")
            rows += page["items"]
            if "next" not in page:
                break
            after = f"&cursor={page['next']}"
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode({"items": rows}) + b"\n")
        return DONE
    if not rows:
        print_note("no device has joined; run `factwire join URL` on one")
    for row in rows:
        seen = f", last seen {format_minute(row['lastSeenAt'])}"
        state = DEVICE_WORDS["online"] if row["online"] else DEVICE_WORDS["offline"] + seen
        agents = ", ".join(row["agents"]) or "no agents"
        about = (row["deviceId"], row["name"], state, row["version"], agents)
        typer.echo("  ".join(terminal_safe(str(each)) for each in about))
    return DONE


@devices.command("confirm")
def confirm_code(code: UserCode, *, hub: HubOption = None) -> None:
    """Show what asks under a code, and confirm it if you say so."""
    run_work(_confirm(code, hub))


async def _confirm(code: str, hub: str | None) -> int:
    path = f"/v1/device-authorizations/{code}"
    async with open_hub_session(hub) as calls:
        asks = await calls.call("GET", path)
        for name, member in _SHOWN.items():
            if asks.get(member):
                typer.echo(f"{name}: {terminal_safe(str(asks[member]))}")
        if asks.get("replaces"):
            typer.echo(f"It will replace your device {terminal_safe(asks['replaces'])}.")
        agreed = typer.confirm("Is this yours, and do you want to let it in?")
        decision = {"decision": "confirm" if agreed else "refuse"}
        await calls.call("POST", f"{path}/decision", decision)
    print_note("confirmed" if agreed else "refused")
    return DONE


_SHOWN = {
    "Name": "name",
    "Platform": "platform",
    "Version": "version",
    "From": "address",
    "Since": "createdAt",
}


@devices.command("rename")
def rename_device(
    device: DeviceArgument,
    name: Annotated[str, typer.Argument(help="What to call it.")],
    *,
    hub: HubOption = None,
) -> None:
    """Rename one of your devices."""

    async def rename() -> int:
        async with open_hub_session(hub) as calls:
            await calls.call("PATCH", f"/v1/devices/{device}", {"name": name})
        return DONE

    run_work(rename())


@devices.command("revoke")
def revoke_device(device: DeviceArgument, *, hub: HubOption = None) -> None:
    """Revoke one of your devices: its token is void at once. What was uploaded stays."""

    async def revoke() -> int:
        async with open_hub_session(hub) as calls:
            await calls.call("DELETE", f"/v1/devices/{device}")
        print_note(f"{terminal_safe(device)} is revoked")
        return DONE

    run_work(revoke())


_TASK_STATUSES: Final[dict[str, TaskStatus]] = {word: each for each, word in TASK_WORDS.items()}
_TASKS_MOST: Final = 100


def tasks(
    *,
    hub: HubOption = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="DEVICE", help="Only tasks of this device, by its name or id."),
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(
            metavar="STATUS", help=f"Only tasks with this status: {', '.join(_TASK_STATUSES)}."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=_TASKS_MOST, help="The number of tasks.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List what was given to agents from a Hub, newest first, also what waits for its device.

    Tasks come from factwire run --queue, from the pages of the Hub and from its chats. Stop one, or
    take it back, with factwire cancel TASK.
    """
    if status is not None and status not in {*_TASK_STATUSES, *TASK_WORDS}:
        known = ", ".join(_TASK_STATUSES)
        raise CliError(f"expected one of the statuses {known}, got {terminal_safe(status, 40)!r}")
    chosen = None if status is None else _TASK_STATUSES.get(status, status)
    run_work(_list_tasks(choose_hub(hub), device, chosen, limit, as_json=as_json))


async def _list_tasks(
    url: str, device: str | None, status: Any, limit: int, *, as_json: bool
) -> int:
    async with hub_client(url) as hub:
        known = [each async for each in hub.devices(limit=100)]
        chosen = None if device is None else (await hub.find_device(device)).device_id
        page = await hub.tasks(device_id=chosen, status=status, limit=limit).page()
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode({"items": page.items}) + b"\n")
        return DONE
    if not page.items:
        print_note("no such task; give one with factwire run --queue, or on a page of the Hub")
    names = {each.device_id: each.name for each in known}
    for task in page.items:
        typer.echo(_task_line(task, names.get(task.device_id, task.device_id)))
    return DONE


def _task_line(task: AgentTask, device: str) -> str:
    until = f"expires {format_minute(task.expires_at)}" if task.status == "queued" else ""
    why = "" if task.error is None else str(task.error.get("message", ""))
    status = TASK_WORDS[task.status] + (", stopping" if _is_stopping(task) else "")
    about = (status, task.task_id, device, task.agent_type, until, why)
    shown = [terminal_safe(each) for each in about if each]
    return "  ".join([*shown, terminal_safe(task.prompt, 60)])


def _is_stopping(task: AgentTask) -> bool:
    return task.closing is not None and task.ended_at is None
