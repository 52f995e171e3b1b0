"""`factwire hub` serves people and their machines; `hub user`, `hub invite`, `hub device` and
`hub audit` work on its database, whether it runs or not.

Whoever may read and write the data folder is the operator and needs no account. A secret is printed
once, on standard output, and is never an argument, which other users of the machine could read.
"""

import getpass
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
import typer
from rich.console import Console

from factwire.cli.targets import load_settings, run_work
from factwire.cli.terminal import DONE, ISSUES, CliError, print_note, terminal_safe
from factwire.facts.status_words import DEVICE_WORDS

if TYPE_CHECKING:
    from factwire.hub.hub_resources import HubPage, PersonAccount
    from factwire.hub.hub_startup import OpenHub
    from factwire.hub.people.accounts import HubServices
    from factwire.hub.records.invitation_records import ActionOrigin
    from factwire.runtime.configuration import HubSettings

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "text"]

_PAGE: Final = 50
_DAY: Final = 86_400

hub = typer.Typer(
    name="hub", invoke_without_command=True, add_completion=False, pretty_exceptions_enable=False
)
_users = typer.Typer(help="Add, list, disable and enable people, and change how they sign in.")
_invitations = typer.Typer(help="Create, list and revoke invitations.")
_devices = typer.Typer(help="List and revoke everybody's devices.")
hub.add_typer(_users, name="user")
hub.add_typer(_invitations, name="invite")
hub.add_typer(_devices, name="device")


class RoleName(StrEnum):
    """What somebody may do."""

    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"


DataOption = Annotated[
    Path | None,
    typer.Option(help="The Hub's data folder; `hub` in the configured one by default."),
]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="sqlite:PATH or postgres://…; from the configuration, or in the data folder.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RoleOption = Annotated[RoleName, typer.Option(help="What the person may do.")]
LimitOption = Annotated[int, typer.Option(min=1, max=500, help="The number of rows per page.")]
AfterOption = Annotated[
    str | None,
    typer.Option(metavar="CURSOR", help="The next page; the value is printed at the end of one."),
]
PersonArgument = Annotated[str, typer.Argument(help="The person's name or id.")]


@hub.callback()
def serve_hub(
    context: typer.Context,
    *,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The port; 0 picks any free port.")
    ] = None,
    data: DataOption = None,
    database: DatabaseOption = None,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The address at which people open the Hub."),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS", help="The address of a reverse proxy in front; can be repeated."
        ),
    ] = None,
    log_level: Annotated[
        LogLevel, typer.Option(envvar="FACTWIRE_LOG_LEVEL", help="The lowest level to log.")
    ] = "info",
    log_format: Annotated[
        LogFormat, typer.Option(help="Log as JSON or as text; auto means text on a terminal.")
    ] = "auto",
) -> None:
    """Serve people and their machines: accounts, invitations and sign-in.

    The first start prints a link to create the first account, an admin's. Ctrl-C stops the Hub.
    Exit code 2: it could not start; the reason is printed.
    """
    if context.invoked_subcommand is not None:
        return
    named = {"host": host, "port": port, "proxies": tuple(proxy or ()) or None}
    folder, settings = _find_hub(data, database, url, **named)
    _serve(folder, settings, log_level, log_format)


def _serve(folder: Path, settings: "HubSettings", level: LogLevel, form: LogFormat) -> None:
    try:
        from factwire.hub.hub_startup import serve
    except ModuleNotFoundError as error:
        raise _missing_extra(error) from error
    from factwire.hub.notifications.channel_senders import MailPasswordMissing
    from factwire.hub.people.identity_providers import ProviderSecretMissing
    from factwire.hub.records.hub_database import RecordsError
    from factwire.serving.access_control import InsecureStart
    from factwire.serving.http_server import AddressUnusable, DataUnusable, run
    from factwire.serving.logs import set_up_logs

    set_up_logs(level, form)
    try:
        run(serve(folder, settings, _greet))
    except (
        InsecureStart,
        AddressUnusable,
        DataUnusable,
        RecordsError,
        ProviderSecretMissing,
        MailPasswordMissing,
    ) as error:
        raise CliError(f"{error.code}: {terminal_safe(str(error))}") from error


def _greet(opened: "OpenHub", address: str) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]Factwire Hub[/bold] listening on {address}")
    first = opened.first_admin
    if first is not None:
        console.print("Create the first account, an admin's, with this link:")
        console.print(f"  {terminal_safe(first.link)}", markup=False)
        note = "It can be used once; the next start prints a new one."
        console.print(f"It is valid until {first.expires_at}. {note}", style="dim")
    console.print("Press Ctrl-C to stop.", style="dim")


@_users.command("add")
def add_user(
    name: Annotated[str, typer.Argument(help="The person's name.")],
    *,
    role: RoleOption = RoleName.MEMBER,
    data: DataOption = None,
    database: DatabaseOption = None,
    as_json: AsJson = False,
) -> None:
    """Add a person, and print a generated password: it cannot be shown again."""

    async def add(services: "HubServices", origin: "ActionOrigin") -> None:
        from factwire.hub.people import administration

        person, password = await administration.add_person(services, name, role.value, origin)
        if as_json:
            _print_json({**msgspec.to_builtins(person), "password": password})
            return
        typer.echo(password)
        print_note(f"{person.name} ({person.person_id}) was added; save the password now")

    _run_on_hub(add, data, database)


@_users.command("list")
def list_users(
    *,
    limit: LimitOption = _PAGE,
    after: AfterOption = None,
    data: DataOption = None,
    database: DatabaseOption = None,
    as_json: AsJson = False,
) -> None:
    """List the people, newest first."""

    async def show(services: "HubServices", _: "ActionOrigin") -> None:
        from factwire.hub.people import administration, sign_in_methods

        page = await administration.list_people(services, after, limit)
        methods = await sign_in_methods.describe_methods(
            services, [row.person_id for row in page.items]
        )
        header = ("id", "name", "role", "signs in with", "created", "disabled")
        rows = [
            (
                row.person_id,
                row.name,
                row.role,
                methods[row.person_id],
                row.created_at,
                row.disabled_at or "-",
            )
            for row in page.items
        ]
        _print_page(page, [header, *rows], "nobody has an account yet", as_json=as_json)

    _run_on_hub(show, data, database)


@_users.command("disable")
def disable_user(
    person: PersonArgument,
    *,
    data: DataOption = None,
    database: DatabaseOption = None,
    as_json: AsJson = False,
) -> None:
    """Disable a person: they are signed out everywhere, and their invitations are revoked."""
    _change_user(person, {"disabled": True}, data, database, as_json=as_json)


@_users.command("enable")
def enable_user(
    person: PersonArgument,
    *,
    data: DataOption = None,
    database: DatabaseOption = None,
    as_json: AsJson = False,
) -> None:
    """Let a disabled person sign in again."""
    _change_user(person, {"disabled": False}, data, database, as_json=as_json)


@_users.command("role")
def change_role(
    person: PersonArgument,
    role: Annotated[RoleName, typer.Argument(help="What the person may do.")],
    *,
    data: DataOption = None,
    database: DatabaseOption = None,
    as_json: AsJson = False,
) -> None:
    """Change what a person may do, at once."""
    _change_user(person, {"role": role.value}, data, database, as_json=as_json)


@_users.command("reset")
def reset_user(
    person: PersonArgument,
    *,
    data: DataOption = None,
    database: DatabaseOption = None,
    as_json: AsJson = False,
) -> None:
    """Print a new generated password for a person, and sign them out everywhere."""

    async def reset(services: "HubServices", origin: "ActionOrigin") -> None:
        from factwire.hub.people import administration

        found = await _find_person(services, person)
        password = await administration.reset_password(services, found.person_id, origin)
        if as_json:
            _print_json({"personId": found.person_id, "password": password})
            return
        typer.echo(password)
        print_note(f"{found.name} has this password now, and is signed out everywhere")

    _run_on_hub(reset, data, database)


@_users.command("methods")
def show_methods(
    person: PersonArgument,
    *,
    remove: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Remove this passkey or identity; its sessions end."),
    ] = None,
    data: DataOption = None,
    database: DatabaseOption = None,
    as_json: AsJson = False,
) -> None:
    """List how a person signs in, or remove one of their passkeys or identities."""

    async def show(services: "HubServices", origin: "ActionOrigin") -> None:
        from factwire.hub.people import sign_in_methods

        found = await _find_person(services, person)
        if remove is not None:
            await sign_in_methods.remove_method(services, found.person_id, remove, origin)
        methods = await sign_in_methods.list_methods(services, found.person_id)
        if as_json:
            _print_json(methods)
            return
        rows = [("-", "password", "", "-", "-")] if methods.password else []
        rows += [
            (each.passkey_id, "passkey", each.name, each.created_at, each.last_used_at or "-")
            for each in methods.passkeys
        ]
        rows += [
            (each.identity_id, each.provider, each.label, each.created_at, each.last_used_at or "-")
            for each in methods.identities
        ]
        _print_rows([("id", "method", "name", "created", "last used"), *rows])

    _run_on_hub(show, data, database)


@_invitations.command("create")
def create_invitation(
    *,
    role: RoleOption = RoleName.MEMBER,
    uses: Annotated[
        int, typer.Option(min=1, max=1_000, help="How many accounts it may create.")
    ] = 1,
    days: Annotated[int, typer.Option(min=1, max=365, help="How many days it is valid.")] = 7,
    data: DataOption = None,
    database: DatabaseOption = None,
    as_json: AsJson = False,
) -> None:
    """Create an invitation, and print its link: it cannot be shown again."""

    async def create(services: "HubServices", origin: "ActionOrigin") -> None:
        from factwire.hub.people import administration

        made = await administration.create_invitation(
            services, role.value, uses, days * _DAY, origin
        )
        if as_json:
            _print_json(made)
            return
        typer.echo(made.link)
        print_note(f"{made.invitation_id} is valid until {made.expires_at}; save the link now")

    _run_on_hub(create, data, database)


@_invitations.command("list")
def list_invitations(
    *,
    limit: LimitOption = _PAGE,
    after: AfterOption = None,
    data: DataOption = None,
    database: DatabaseOption = None,
    as_json: AsJson = False,
) -> None:
    """List all invitations, newest first; never a link."""

    async def show(services: "HubServices", _: "ActionOrigin") -> None:
        from factwire.hub.people import administration

        page = await administration.list_invitations(services, None, after, limit)
        header = ("id", "role", "uses", "expires", "created by", "revoked")
        rows = [
            (
                row.invitation_id,
                row.role,
                f"{row.uses}/{row.max_uses}",
                row.expires_at,
                row.created_by or "operator",
                row.revoked_at or "-",
            )
            for row in page.items
        ]
        _print_page(page, [header, *rows], "no invitations", as_json=as_json)

    _run_on_hub(show, data, database)


@_invitations.command("revoke")
def revoke_invitation(
    invitation_id: Annotated[str, typer.Argument(help="The id that `list` shows.")],
    *,
    data: DataOption = None,
    database: DatabaseOption = None,
) -> None:
    """Revoke an invitation; accounts that it created stay."""

    async def revoke(services: "HubServices", origin: "ActionOrigin") -> None:
        from factwire.hub.people import administration

        await administration.revoke_invitation(services, None, invitation_id, origin)
        print_note(f"{invitation_id} is revoked")

    _run_on_hub(revoke, data, database)


@_devices.command("list")
def list_devices(
    *,
    limit: LimitOption = _PAGE,
    after: AfterOption = None,
    data: DataOption = None,
    database: DatabaseOption = None,
    as_json: AsJson = False,
) -> None:
    """List all devices, newest first, the revoked ones too."""

    async def show(services: "HubServices", _: "ActionOrigin") -> None:
        from factwire.hub.people import devices

        page = await devices.list_all_devices(services, after, limit)
        header = ("id", "name", "owner", "edge", "status", "last seen", "revoked")
        rows = [
            (
                row.device_id,
                row.name,
                row.owner_id,
                row.edge_id,
                DEVICE_WORDS["online" if row.online else "offline"],
                row.last_seen_at,
                row.revoked_at or "-",
            )
            for row in page.items
        ]
        _print_page(page, [header, *rows], "no device has joined yet", as_json=as_json)

    _run_on_hub(show, data, database)


@_devices.command("revoke")
def revoke_device(
    device_id: Annotated[str, typer.Argument(help="The id that `list` shows.")],
    *,
    data: DataOption = None,
    database: DatabaseOption = None,
) -> None:
    """Revoke somebody's device: its token is void at once. What was uploaded stays."""

    async def revoke(services: "HubServices", origin: "ActionOrigin") -> None:
        from factwire.hub.people import devices

        await devices.revoke_device(services, None, device_id, origin)
        print_note(f"{device_id} is revoked")

    _run_on_hub(revoke, data, database)


@hub.command("audit")
def show_audit(
    *,
    limit: LimitOption = _PAGE,
    after: AfterOption = None,
    person: Annotated[
        str | None, typer.Option(help="Only what this person did, or what was done to them.")
    ] = None,
    data: DataOption = None,
    database: DatabaseOption = None,
    as_json: AsJson = False,
) -> None:
    """List what was done, newest first: who, what, when and from where."""

    async def show(services: "HubServices", _: "ActionOrigin") -> None:
        from factwire.hub.people import administration

        owner = (await _find_person(services, person)).person_id if person else None
        page = await administration.list_audit(services, owner, after, limit)
        header = ("at", "action", "by", "about", "from", "details")
        rows = [
            (
                row.at,
                row.action,
                row.actor_id or "-",
                row.subject_id or "-",
                f"{row.via} {row.address}".strip(),
                " ".join(f"{name}={value}" for name, value in row.details.items()),
            )
            for row in page.items
        ]
        _print_page(page, [header, *rows], "nothing was done yet", as_json=as_json)

    _run_on_hub(show, data, database)


def _change_user(
    person: str,
    change: dict[str, Any],
    data: Path | None,
    database: str | None,
    *,
    as_json: bool,
) -> None:
    async def apply(services: "HubServices", origin: "ActionOrigin") -> None:
        from factwire.hub.hub_resources import PersonChange
        from factwire.hub.people import administration

        found = await _find_person(services, person)
        changed = await administration.change_person(
            services, found.person_id, PersonChange(**change), origin
        )
        if as_json:
            _print_json(changed)
            return
        state = f"disabled since {changed.disabled_at}" if changed.disabled_at else "enabled"
        print_note(f"{changed.name} ({changed.person_id}): {changed.role}, {state}")

    _run_on_hub(apply, data, database)


async def _find_person(services: "HubServices", person: str) -> "PersonAccount":
    """An account by its id or its name."""
    from factwire.hub.people import administration

    if person.startswith("usr_"):
        found = await administration.find_by_id(services, person)
        if found is not None:
            return found
    return await administration.find_by_name(services, person)


def _find_hub(
    data: Path | None, database: str | None, url: str | None = None, **named: Any
) -> tuple[Path, "HubSettings"]:
    """The data folder and the settings, flags before the configuration."""
    options = {"hub.database": database, "hub.url": url}
    flags = [(key, value) for key, value in options.items() if value]
    configuration = load_settings(Path.cwd(), flags).configuration
    changes = {name: value for name, value in named.items() if value is not None}
    folder = Path(os.path.abspath(data)) if data else Path(configuration.data) / "hub"  # noqa: PTH100
    return folder, msgspec.structs.replace(configuration.hub, **changes)


Work = Callable[["HubServices", "ActionOrigin"], Awaitable[None]]


def _run_on_hub(work: Work, data: Path | None, database: str | None) -> None:
    """Do something on the database of a Hub that exists, and end the command."""
    folder, settings = _find_hub(data, database)

    async def run() -> int:
        async with _open_services(folder, settings) as (services, origin):
            await work(services, origin)
        return DONE

    run_work(run())


@asynccontextmanager
async def _open_services(
    folder: Path, settings: "HubSettings"
) -> "AsyncGenerator[tuple[HubServices, ActionOrigin]]":
    try:
        from factwire.hub.hub_startup import DATABASE_FILE, open_services, read_public_url
    except ModuleNotFoundError as error:
        raise _missing_extra(error) from error
    from factwire.hub.people.identity_providers import build_providers
    from factwire.hub.records.hub_database import RecordsError
    from factwire.hub.records.invitation_records import ActionOrigin
    from factwire.serving.access_control import InsecureStart
    from factwire.serving.asgi import Problem
    from factwire.serving.http_server import DataUnusable

    if settings.database is None and not (folder / DATABASE_FILE).is_file():
        raise CliError(
            f"hub_not_started: {terminal_safe(str(folder))} has no {DATABASE_FILE}; start "
            "`factwire hub` there first, or name its folder with --data"
        )
    url = read_public_url(folder, settings)
    # A command signs nobody in, so it needs no secret of a provider.
    named = {
        name: msgspec.structs.replace(each, client_secret_env=None)
        for name, each in settings.oidc.items()
    }
    providers = build_providers(named, {}, time)
    try:
        async with open_services(folder, settings.database, url, providers=providers) as services:
            yield services, ActionOrigin(via="terminal", address=getpass.getuser())
    except Problem as problem:
        raise CliError(f"{problem.code}: {terminal_safe(problem.detail)}", ISSUES) from problem
    except (InsecureStart, DataUnusable, RecordsError) as error:
        raise CliError(f"{error.code}: {terminal_safe(str(error))}") from error


def _missing_extra(error: ModuleNotFoundError) -> CliError:
    return CliError(
        f"missing_extra: the Hub needs {error.name}, which is not installed; install "
        "'factwire[hub]'"
    )


def _print_page(
    page: "HubPage[Any]", rows: Sequence[tuple[str, ...]], none: str, *, as_json: bool
) -> None:
    """A page as JSON, or as columns that are never cut: an id is there to be copied."""
    if as_json:
        _print_json(page)
        return
    if not page.items:
        print_note(none)
        return
    _print_rows(rows)
    if page.next is not None:
        print_note(f"more rows: --after {page.next}")


def _print_rows(rows: Sequence[tuple[str, ...]]) -> None:
    cells = [[terminal_safe(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        typer.echo("  ".join(map(str.ljust, row, widths)).rstrip())


def _print_json(value: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
