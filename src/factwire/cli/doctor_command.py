"""`factwire doctor`: what is installed and set up, what is wrong, and how to fix it.

A program is asked for nothing but its version, in a home that is thrown away, without any key, and
not for long; one that a project's file or a relative PATH leads to is not started at all. SDKs are
looked up, not imported. No model and no MCP server is asked or started; the Hub that this Edge has
joined is asked whether it still accepts the token of this device.
"""

import asyncio
import os
import platform
import re
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from email.utils import parsedate_to_datetime
from importlib import import_module
from importlib.metadata import (
    EntryPoint,
    PackageNotFoundError,
    distribution,
    entry_points,
    requires,
    version,
)
from importlib.util import find_spec
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Final, Literal
from urllib.parse import urlsplit

import apsw
import msgspec
import typer
from rich.console import Console
from rich.text import Text

from factwire.cli.targets import JournalOption, WorkspaceOption, journal_url, run_work
from factwire.cli.terminal import DONE, ISSUES, count_of, terminal_safe
from factwire.facts.own_secrets import SHORTEST_VALUE
from factwire.journal import JournalError, open_journal
from factwire.journal.sqlite.schema import SQLITE_FLOOR
from factwire.runtime.agents import (
    GROUP,
    WRAPPERS,
    AgentError,
    AgentRegistry,
    BrokenEntryPoint,
    NameTaken,
)
from factwire.runtime.agents.openai_agent import EXTRA, Endpoint, endpoint_of
from factwire.runtime.configuration import (
    AgentSettings,
    Configuration,
    DeclaredRedaction,
    McpServer,
    ResolvedConfiguration,
    SandboxSettings,
)
from factwire.runtime.control import SocketControls
from factwire.runtime.errors import TurnFailed
from factwire.runtime.policy import PolicyRule
from factwire.runtime.processes import child_environment
from factwire.runtime.program_lookup import (
    find_own_program,
    find_planted_program,
    note_agent_folders,
)
from factwire.runtime.sandbox import Probe, describe_unenforced_rules, probe_sandbox
from factwire.runtime.toolbox.mcp_content import list_variables
from factwire.runtime.toolbox.mcp_servers import MCP_EXTRA, is_installed, is_near
from factwire.sources import find_outside_agent
from factwire.sources.kit.program import AgentProgram

if TYPE_CHECKING:
    from factwire.edge.hub_access import HubRefused, HubTarget

_MARKS: Final = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}
_NAME: Final = 14
_HUB_SECONDS: Final = 5.0
_SKEW_SECONDS: Final = 30


def doctor(
    *,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the installation: Python, SQLite, sandbox, journal, data folder, agents, MCP servers.

    Each failed check says what to do. Exit code 0: everything works. 1: something fails.
    """
    run_work(_run_checks(journal, workspace, as_json=as_json))


async def _run_checks(journal: str | None, workspace: "Path | None", *, as_json: bool) -> int:
    found = [finding async for finding in _check_all(journal, workspace)]
    sick = any(finding.status == "fail" for finding in found)
    if as_json:
        report = {"ok": not sick, "findings": found}
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    else:
        _show_findings(found)
    return ISSUES if sick else DONE


async def _check_all(
    journal: str | None, workspace: "Path | None"
) -> "AsyncIterator[DoctorFinding]":
    from factwire.runtime.agents import BUILT_INS, register
    from factwire.runtime.configuration import (
        ConfigurationError,
        RedactionSettings,
        SandboxSettings,
        declare_redaction,
        load_configuration,
    )

    yield check_python()
    yield check_sqlite()
    yield check_extras()
    flags = [("journal", journal_url(journal))] if journal else []
    note_agent_folders((workspace or Path.cwd(),))
    try:
        resolved = load_configuration(workspace, flags=flags)
        declared = declare_redaction(resolved.configuration.redaction)
    except ConfigurationError as error:
        for problem in error.problems:
            yield fail(
                "configuration", str(problem), "fix this first; the other checks depend on it"
            )
        yield await check_sandbox(SandboxSettings())
        return
    settings = resolved.configuration
    note_agent_folders(settings.workspaces)
    yield await check_sandbox(settings.sandbox, settings.policy.policy().denied_paths)
    yield check_configuration(resolved)
    if settings.redaction != RedactionSettings():
        yield check_redaction(declared)
    if resolved.untrusted is not None:
        yield warn("project", str(resolved.untrusted), "read the file, then run factwire trust")
    yield check_workspace(settings, workspace)
    yield check_data_folder(settings)
    yield await check_journal(settings)
    yield await check_runtimes(settings)
    for finding in await check_hub(settings):
        yield finding
    registered = register(settings)
    findings = (
        *check_agents(settings, registered),
        *check_models(settings),
        *check_servers(settings),
    )
    others = {name: why for name, why in registered.problems.items() if name not in BUILT_INS}
    for finding in (*findings, *await check_outside_agents(resolved, others)):
        yield finding


def _show_findings(found: "list[DoctorFinding]") -> None:
    console = Console(highlight=False, soft_wrap=True)
    for finding in found:
        mark, style = _MARKS[finding.status]
        line = Text.assemble(
            (f"{mark} ", style), (f"{terminal_safe(finding.name):<{_NAME}} ", "bold")
        )
        console.print(line.append(terminal_safe(finding.message)))
        if finding.fix is not None:
            console.print(Text(f"{'':<{_NAME + 2}} → {terminal_safe(finding.fix)}", style="cyan"))


class DoctorFinding(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is stable. `fix` says what to do; only what fails makes the doctor fail."""

    name: str
    status: Literal["ok", "warn", "fail"]
    message: str
    fix: str | None = None


def ok(name: str, message: str) -> DoctorFinding:
    return DoctorFinding(name=name, status="ok", message=message)


def warn(name: str, message: str, fix: str) -> DoctorFinding:
    return DoctorFinding(name=name, status="warn", message=message, fix=fix)


def fail(name: str, message: str, fix: str) -> DoctorFinding:
    return DoctorFinding(name=name, status="fail", message=message, fix=fix)


_EXTRA: Final = re.compile(r"^([A-Za-z0-9_.-]+).*;.*extra == ['\"]([\w-]+)['\"]")
_BUBBLEWRAP: Final = "install bubblewrap, for example: apt install bubblewrap"
_NAMESPACES: Final = "enable user namespaces, or run on a system that allows them"


def check_python() -> DoctorFinding:
    return ok("python", f"{platform.python_implementation()} {platform.python_version()}")


def check_sqlite() -> DoctorFinding:
    """The journal's SQLite, which comes with apsw."""
    version = apsw.sqlite_lib_version()
    if _version_number(version) >= SQLITE_FLOOR:
        return ok("sqlite", f"{version}, apsw {apsw.apsw_version()}")
    message = f"{version} may damage a journal under load"
    return fail("sqlite", message, "install a newer apsw: pip install --upgrade apsw")


def _version_number(version: str) -> int:
    major, minor, patch = (*map(int, version.split(".")[:3]), 0, 0)[:3]
    return major * 1_000_000 + minor * 1_000 + patch


def check_extras() -> DoctorFinding:
    """Which extras are complete."""
    there: dict[str, bool] = {}
    for extra, package in _extra_packages():
        there[extra] = there.get(extra, True) and _is_installed(package)
    complete = ", ".join(name for name, holds in there.items() if holds) or "none"
    missing = ", ".join(name for name, holds in there.items() if not holds)
    more = f"; available: {missing} (pip install 'factwire[NAME]')" if missing else ""
    return ok("extras", f"{complete}{more}")


def _extra_packages() -> Iterator[tuple[str, str]]:
    try:
        wanted = requires("factwire") or []
    except PackageNotFoundError:
        return
    for requirement in wanted:
        found = _EXTRA.match(requirement)
        if found and found[1] != "factwire":
            yield found[2], found[1]


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


async def check_sandbox(
    wanted: SandboxSettings, rules: tuple[PolicyRule, ...] = ()
) -> DoctorFinding:
    """Whether a sandbox works, tried and not guessed; and if not, which rules nothing enforces."""
    found = await probe_sandbox() if wanted.mode != "off" else None
    if found is None:
        finding = ok("sandbox", "turned off in the configuration: commands run unconfined")
    else:
        finding = judge_sandbox(found, required=wanted.mode == "require")
    if not rules or wanted.mode == "require" or (found is not None and found.works):
        return finding
    message = f"{finding.message}; {describe_unenforced_rules(rules)}"
    return warn("sandbox", message, finding.fix or "set sandbox.mode to prefer or require")


def judge_sandbox(found: Probe, *, required: bool) -> DoctorFinding:
    """What a probe comes to; a sandbox that is only preferred may be missing."""
    if found.works:
        about = f"bubblewrap {found.version} works"
        if not found.missing:
            return ok("sandbox", about)
        lacking = ", ".join(name.replace("_", " ") for name in found.missing)
        return warn("sandbox", f"{about}, without {lacking}", "a newer bubblewrap or kernel")
    fix = _BUBBLEWRAP if found.reason_code == "bubblewrap_missing" else _NAMESPACES
    if found.reason_code == "not_linux":
        fix = "run on Linux, or set sandbox.mode to off"
    version = f"bubblewrap {found.version}: " if found.version else ""
    message = f"{found.reason_code}: {version}{found.reason}"
    if required:
        return fail("sandbox", f"{message}; commands are refused (sandbox.mode require)", fix)
    return warn("sandbox", f"{message}; commands run unconfined (sandbox.mode prefer)", fix)


_SECONDS: Final = 20.0
"""How long a program may take to say its version; the first start of some unpacks them."""

_CHARACTERS: Final = 100
"""Of what a program says about its version."""


async def check_outside_agents(
    resolved: ResolvedConfiguration, problems: Mapping[str, AgentError]
) -> list[DoctorFinding]:
    """A line for each; what a configuration breaks is told with the agents that it names."""
    configuration = resolved.configuration
    points = sorted(set(entry_points(group=GROUP)), key=lambda point: point.name)
    found = {
        point.name: program for point in points if (program := _load_program(point)) is not None
    }
    others = [
        ok(name, f"not configured: {error}")
        for name, error in problems.items()
        if name not in found and is_absent(name, error, configuration)
    ]
    programs = [_check_program(name, program, resolved) for name, program in found.items()]
    return [*await asyncio.gather(*programs), *others, *_check_sdks()]


def is_absent(name: str, error: AgentError, configuration: Configuration) -> bool:
    """Whether an agent cannot be had because nobody has installed it or set it up: no fault."""
    return name not in configuration.agents and not isinstance(error, BrokenEntryPoint | NameTaken)


def _load_program(point: EntryPoint) -> AgentProgram | None:
    """The program of an agent: `PROGRAM` of the module that makes it, if it has one."""
    try:
        found = getattr(import_module(point.module), "PROGRAM", None)
    except Exception:  # noqa: BLE001 - a module that cannot be loaded is told as a broken agent
        return None
    return found if isinstance(found, AgentProgram) else None


async def _check_program(
    name: str, program: AgentProgram, resolved: ResolvedConfiguration
) -> DoctorFinding:
    found = _find_program(program, resolved.configuration.agents.get(name))
    planted = find_planted_program(program.name)
    if found is None and planted is not None:
        message = f"{planted} is in a workspace, where agents may write; it is never run"
        return warn(name, message, f"install it elsewhere: {program.install}")
    if found is None:
        return ok(name, f"{program.title} is not installed; install it with: {program.install}")
    where, is_relative = found
    origin = resolved.origins.get(f"agents.{name}.options")
    if is_relative or (origin is not None and origin.source == "project"):
        return ok(name, f"{where}, found by way of this folder; not started")
    version_text = await _ask_version(where)
    if version_text is None:
        return warn(name, f"{where} does not report a version", f"try {where} --version by hand")
    return ok(name, f"{version_text}, {where}")


def _find_program(
    program: AgentProgram, configured: AgentSettings | None
) -> tuple[str, bool] | None:
    """Where it is, and whether only from this folder: PATH may be relative."""
    wanted = None if configured is None else configured.options.get("command")
    there = program.find_path(wanted if isinstance(wanted, str) else None)
    return None if there is None else (str(Path(there).absolute()), not Path(there).is_absolute())


async def _ask_version(program: str) -> str | None:
    """What a program says, in one line; None if it does not."""
    with tempfile.TemporaryDirectory(prefix="factwire-doctor-") as home:
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                "--version",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=child_environment(os.environ, {"HOME": home}),
                cwd=home,
                start_new_session=True,
            )
        except OSError:
            return None
        try:
            async with asyncio.timeout(_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            return None
    line = output.decode("utf-8", "replace").strip().partition("\n")[0]
    return line[:_CHARACTERS] if process.returncode == 0 and line else None


def _check_sdks() -> Iterator[DoctorFinding]:
    for name in sorted({point.name for point in entry_points(group=WRAPPERS)}):
        agent = find_outside_agent(name)
        packages, extra = (name,), name
        if agent is not None:
            packages, extra = agent.packages, agent.extra
        there = next(filter(None, map(_installed_version, packages)), None)
        if there is None:
            yield ok(name, f"not installed; install it with: pip install 'factwire[{extra}]'")
        else:
            yield ok(name, f"{there}; run its agents as module:name")


def _installed_version(package: str) -> str | None:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return None


_OTHERS: Final = 0o077
_VERIFIED_BYTES: Final = 256 * 1024 * 1024
"""A journal up to this size is walked from end to end; that takes seconds."""


def check_configuration(resolved: ResolvedConfiguration) -> DoctorFinding:
    """Which files were read."""
    files = dict.fromkeys(
        where.rpartition(":")[0] if where.rpartition(":")[2].isdigit() else where
        for origin in resolved.origins.values()
        if origin.source in ("project", "user") and origin.where
        for where in origin.where.split(", ")
    )
    return ok("configuration", ", ".join(files) or "defaults; no configuration file found")


def check_redaction(declared: DeclaredRedaction) -> DoctorFinding:
    """How many secrets of the operator's own count; never which."""
    message = (
        f"{count_of(declared.patterns, 'own pattern')} and "
        f"{count_of(declared.values, 'value')} that are never stored"
    )
    if declared.missing:
        message += f"; file not found: {', '.join(declared.missing)}"
        return warn("redaction", message, "create it, or remove it from redaction.never_store")
    if declared.ignored:
        message += f"; too short or too common to hide: {', '.join(declared.ignored)}"
        return warn("redaction", message, f"use values of at least {SHORTEST_VALUE} characters")
    return ok("redaction", message)


def check_workspace(settings: Configuration, named: Path | None) -> DoctorFinding:
    """Whether a run could work in the folder that is named, or in the current one."""
    folder = (named or Path.cwd()).resolve()
    if not folder.is_dir():
        message = f"workspace_missing: folder not found: {folder}"
        return fail("workspace", message, "create it, or choose another with --workspace")
    allowed = [os.path.realpath(each) for each in settings.workspaces]
    if named is None and allowed and not any(map(folder.is_relative_to, allowed)):
        message = f"{folder} is not in any of the configured workspaces; runs here are refused"
        return warn("workspace", message, "change to one of them, or add this one with --workspace")
    return ok("workspace", str(folder))


def check_data_folder(settings: Configuration) -> DoctorFinding:
    """Whether what is kept is private and can be kept."""
    folder = Path(settings.data)
    try:
        about = folder.stat()
    except FileNotFoundError:
        return ok("data folder", f"{folder}, created on the first run")
    except OSError as error:
        fix = "set FACTWIRE_DATA to a usable folder"
        return fail("data folder", f"cannot access {folder}: {error.strerror}", fix)
    if not stat.S_ISDIR(about.st_mode) or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        fix = "set FACTWIRE_DATA to a writable folder"
        return fail("data folder", f"{folder} is not a writable folder", fix)
    if about.st_mode & _OTHERS:
        mode = stat.S_IMODE(about.st_mode)
        message = f"{folder} is accessible to other users (mode {mode:03o})"
        return warn("data folder", message, f"chmod 700 {folder}")
    return ok("data folder", f"{folder}, private")


async def check_journal(settings: Configuration) -> DoctorFinding:
    """Whether the journal opens, and is whole."""
    scheme, _, rest = settings.journal.partition(":")
    path = Path(rest.partition("?")[0])
    if scheme == "sqlite" and not await asyncio.to_thread(path.exists):
        return ok("journal", f"{path}, created on the first run")
    url = f"sqlite:{path}?mode=ro" if scheme == "sqlite" else settings.journal
    try:
        return await _open_and_verify(url, scheme)
    except (JournalError, OSError) as error:
        code = error.code if isinstance(error, JournalError) else "journal_unavailable"
        fix = "check the URL, or restore the journal from an export (factwire journal import)"
        return fail("journal", f"{code}: {error}", fix)


async def _open_and_verify(url: str, scheme: str) -> DoctorFinding:
    async with open_journal(url) as opened:
        stats = await opened.stats()
        about = f"{scheme}, {count_of(stats.facts, 'fact')}, {count_of(stats.threads, 'thread')}"
        if stats.bytes > _VERIFIED_BYTES:
            return ok("journal", f"{about}, opens; use factwire journal verify to check every byte")
        report = await opened.verify()
    if report.damage is None:
        return ok("journal", f"{about}, intact")
    message = f"journal_corrupt: {report.damage.reason} at {report.damage.first}"
    return fail("journal", message, "restore it from an export (factwire journal import)")


async def check_runtimes(settings: Configuration) -> DoctorFinding:
    """What runs now."""
    found = await SocketControls(settings.data).status()
    if not found:
        return ok("running", "nothing")
    words = (f"process {each.pid} on {count_of(len(each.threads), 'thread')}" for each in found)
    return ok("running", ", ".join(words))


async def check_hub(settings: Configuration) -> list[DoctorFinding]:
    """The Hub that was joined: whether it answers, whether it accepts this device, whether the
    clocks agree, what is wrong with the link of the Edge that runs, what was uploaded.
    """
    from factwire.edge.hub_access import HubFileUnusable, read_target

    try:
        target = await asyncio.to_thread(read_target, Path(settings.data))
    except HubFileUnusable as error:
        return [fail("hub", str(error), "run factwire leave --force, then factwire join")]
    if target is None:
        return [ok("hub", "not joined; factwire join URL")]
    reached = await _ask_hub(target)
    link = await _check_link(settings)
    return [reached, *link, await _check_upload(settings, target.url)]


async def _check_link(settings: Configuration) -> list[DoctorFinding]:
    """What the Edge that runs says of its link; nothing where none does."""
    from factwire.edge.hub_access import read_link_trouble

    running = {each.pid for each in await SocketControls(settings.data).status()}
    noted = await asyncio.to_thread(read_link_trouble, Path(settings.data))
    if noted is None or noted.pid not in running:
        return []
    problem, _, fix = noted.trouble.partition("; ")
    return [fail("hub link", problem, fix or "look at the log of the Edge")]


async def _ask_hub(target: "HubTarget") -> DoctorFinding:
    from factwire.edge.hub_access import build_refusal

    url = target.url
    try:
        import httpx
    except ModuleNotFoundError:
        return fail("hub", f"{url}: httpx is not installed", "pip install 'factwire[client]'")
    try:
        async with httpx.AsyncClient(base_url=url, timeout=_HUB_SECONDS) as http:
            # What the Hub knows of version and agents stays: the Edge reports those.
            body = {"deviceToken": target.token}
            answer = await http.post("/v1/auth/device", json=body)
    except httpx.HTTPError as error:
        message = f"{url} does not answer: {error or type(error).__name__}"
        return warn("hub", message, "check the address; the Edge works on and catches up later")
    if not answer.is_success:
        return _judge_refusal(url, build_refusal(answer))
    return _compare_clocks(url, answer.headers)


def _judge_refusal(url: str, refusal: "HubRefused") -> DoctorFinding:
    if refusal.code == "device_token_invalid":
        fix = "run factwire leave --force, then factwire join"
        return fail("hub", f"{url} refuses this device: {refusal}", fix)
    return warn("hub", f"{url} answers {refusal.status}", "look at the log of the Hub")


def _compare_clocks(url: str, headers: Mapping[str, str]) -> DoctorFinding:
    try:
        skew = abs(time() - parsedate_to_datetime(headers["date"]).timestamp())
    except (KeyError, ValueError):
        return ok("hub", f"joined {url}, which accepts this device")
    if skew > _SKEW_SECONDS:
        message = f"the clock of {url} differs from this one by {skew:.0f} s"
        return warn("hub", message, "synchronise both clocks, for example by NTP")
    return ok("hub", f"joined {url}, which accepts this device; the clocks agree")


async def _check_upload(settings: Configuration, url: str) -> DoctorFinding:
    from factwire.edge.hub_upload import UPLOAD_FILE, UploadMark

    path = Path(settings.data) / UPLOAD_FILE
    try:
        mark = msgspec.json.decode(await asyncio.to_thread(path.read_bytes), type=UploadMark)
    except (OSError, msgspec.MsgspecError):
        return warn("hub upload", "nothing was uploaded yet", "start factwire edge")
    source, _, rest = settings.journal.partition(":")
    if source != "sqlite":
        return warn("hub upload", "only a SQLite journal is uploaded", "use sqlite:PATH")
    try:
        async with open_journal(f"sqlite:{rest.partition('?')[0]}?mode=ro") as journal:
            head = await journal.head()
    except (JournalError, OSError) as error:
        return fail("hub upload", f"the journal cannot be read: {error}", "see journal above")
    if (mark.url, mark.epoch) != (url, head.epoch):
        return warn("hub upload", "this journal was not uploaded yet", "start factwire edge")
    missing = head.seq - mark.acked_seq
    if missing <= 0:
        return ok("hub upload", f"all {count_of(head.seq, 'fact')}")
    message = f"{count_of(missing, 'fact')} behind"
    return warn("hub upload", message, "start factwire edge; it goes on by itself")


def check_agents(settings: Configuration, registered: AgentRegistry) -> Iterator[DoctorFinding]:
    """Which agents there are, and what is wrong with the others."""
    yield ok("agents", ", ".join(sorted(registered.agents)))
    for name, error in registered.problems.items():
        if is_absent(name, error, settings):
            continue
        yield warn(f"agent {name}", f"{error.code}: {error}", "fix it, or remove it from the file")
    if settings.agent is not None and settings.agent not in registered.agents:
        message = f"the configured agent {settings.agent} does not exist"
        yield fail("agent", message, "set agent to one of the available agents")


KIND: Final = "openai"
_INSTALL_OPENAI: Final = f"pip install 'factwire[{EXTRA}]'"


def check_models(
    configuration: Configuration, environment: Mapping[str, str] = os.environ
) -> Iterator[DoctorFinding]:
    """A line for each agent of the kind `openai`, or one that says how to have one."""
    configured = {name: each for name, each in configuration.agents.items() if each.kind == KIND}
    if find_spec("pydantic_ai") is None or find_spec("openai") is None:
        yield (
            warn(
                KIND, "the configured agents need a library that is not installed", _INSTALL_OPENAI
            )
            if configured
            else ok(KIND, f"not installed; install it with: {_INSTALL_OPENAI}")
        )
        return
    if not configured:
        yield ok(KIND, "not configured; set agents.openai.model, or pass --model to a run")
    for name, settings in configured.items():
        try:
            yield _check_model(f"model of {name}", endpoint_of(settings), environment)
        except AgentError:
            # Told as an agent that cannot be had.
            continue


def _check_model(name: str, endpoint: Endpoint, environment: Mapping[str, str]) -> DoctorFinding:
    where = f"{endpoint.model} at {endpoint.host} ({endpoint.place})"
    try:
        key = endpoint.key(environment)
    except TurnFailed as missing:
        return warn(name, f"{where}; {missing}", missing.hint or "")
    if endpoint.exposes_key:
        return warn(name, f"{where}; the key is sent unencrypted", "use an https URL")
    return ok(name, f"{where}, " + ("no key" if key is None else f"key in {endpoint.key_variable}"))


_INSTALL_MCP: Final = f"pip install 'factwire[{MCP_EXTRA}]'"


def check_servers(
    configuration: Configuration, environment: Mapping[str, str] = os.environ
) -> Iterator[DoctorFinding]:
    """A line for each server; none where none is configured."""
    if configuration.mcp and not is_installed():
        count = count_of(len(configuration.mcp), "server")
        yield warn("mcp", f"{count} configured, but the library is not installed", _INSTALL_MCP)
        return
    for name, settings in configuration.mcp.items():
        yield _check_server(f"mcp {name}", settings, environment)


def _check_server(name: str, settings: McpServer, environment: Mapping[str, str]) -> DoctorFinding:
    wanted = dict.fromkeys((*list_variables(settings.env), *list_variables(settings.headers)))
    missing = [each for each in wanted if not environment.get(each)]
    if missing:
        message = f"not set: {', '.join(missing)}"
        return warn(name, message, "set them in the environment, or remove them from the file")
    if settings.url is not None:
        return _check_url(name, settings.url, secret=bool(wanted))
    return _check_command(name, settings.command[0], environment)


def _check_url(name: str, url: str, *, secret: bool) -> DoctorFinding:
    parts = urlsplit(url)
    if secret and parts.scheme == "http" and not is_near(url):
        return warn(
            name, f"at {parts.netloc}; its secrets are sent unencrypted", "use an https URL"
        )
    return ok(name, f"at {parts.netloc}; not checked")


def _check_command(name: str, program: str, environment: Mapping[str, str]) -> DoctorFinding:
    found = find_own_program(program, environment.get("PATH"))
    if found is None:
        return warn(name, f"program not found: {program}", "install it, or fix the command")
    return ok(name, f"{found}; not started")
