"""What a runtime takes from its configuration for turns: what agents act with, how turns are
run, and where.

Agents get `TurnResources` and nothing else of the configuration; a turn works in a folder that
is allowed, by where that folder really is.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from factwire.journal.blobs import BlobStore, FileBlobs
from factwire.runtime.configuration.configuration import OUTPUT_BYTES, Configuration, McpServer
from factwire.runtime.configuration.resolution import declare_redaction
from factwire.runtime.errors import WorkspaceNotAllowed
from factwire.runtime.limits import ACTIVE_TURNS, APPROVAL_SECONDS, INTERRUPT_SECONDS, TURN_SECONDS
from factwire.runtime.policy import Policy
from factwire.runtime.processes import Processes
from factwire.runtime.retry_policy import RetryPolicy
from factwire.runtime.sandbox import SandboxPolicy


class TurnResources(msgspec.Struct, frozen=True, kw_only=True):
    """Without `processes` no program can be run; `output_bytes` of each stay in facts."""

    blobs: BlobStore
    policy: Policy = Policy()
    processes: Processes | None = None
    sandbox: SandboxPolicy = SandboxPolicy(mode="prefer")
    output_bytes: int = OUTPUT_BYTES
    approval_seconds: float = APPROVAL_SECONDS
    unwatched: tuple[str, ...] = ()
    """Beginnings of real paths that are the runtime's own: no command's work, wherever they lie."""
    mcp: dict[str, McpServer] = msgspec.field(default_factory=dict[str, McpServer])
    """Servers of tools by their names; none is started before it is needed."""
    describe_thread: Callable[[str], dict[str, Any]] = lambda _: {}
    """What is on record of a thread by its id, which an agent's change of it is completed with."""


def open_blob_store(configuration: Configuration) -> BlobStore:
    """Blobs lie beside a journal that is a file, else in the data folder."""
    scheme, _, rest = configuration.journal.partition(":")
    if scheme == "sqlite":
        return FileBlobs(f"{rest.partition('?')[0]}.blobs")
    return FileBlobs(Path(configuration.data, "blobs"))


def build_turn_resources(configuration: Configuration, blobs: BlobStore) -> TurnResources:
    """The means that a configuration grants; the secrets that it names are hidden from now on."""
    declare_redaction(configuration.redaction)
    processes = Processes(configuration.data, workspaces=configuration.workspaces, blobs=blobs)
    wanted = configuration.sandbox
    scheme, _, rest = configuration.journal.partition(":")
    own = [os.path.realpath(configuration.data) + os.sep]
    if scheme == "sqlite":
        # Its log and its blobs have names that begin with its own.
        own.append(os.path.realpath(rest.partition("?")[0]))
    return TurnResources(
        blobs=blobs,
        policy=configuration.policy.policy(),
        processes=processes,
        sandbox=SandboxPolicy(mode=wanted.mode, network=wanted.network),
        output_bytes=configuration.limits.output_bytes,
        approval_seconds=configuration.limits.approval_seconds,
        unwatched=tuple(own),
        mcp=configuration.mcp,
    )


class TurnSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`retries` has the agents, by name, that are tried again otherwise than `retry` says."""

    turn_seconds: float = TURN_SECONDS
    interrupt_seconds: float = INTERRUPT_SECONDS
    active_turns: int = ACTIVE_TURNS
    retry: RetryPolicy = RetryPolicy()
    retries: dict[str, RetryPolicy] = msgspec.field(default_factory=dict[str, RetryPolicy])

    def retry_of(self, agent: str) -> RetryPolicy:
        return self.retries.get(agent, self.retry)


def build_turn_settings(configuration: Configuration) -> TurnSettings:
    """The settings that a configuration comes to."""
    agents = configuration.agents.items()
    return TurnSettings(
        turn_seconds=configuration.limits.turn_seconds,
        active_turns=configuration.limits.concurrent_runs,
        retry=configuration.retry,
        retries={name: agent.retry for name, agent in agents if agent.retry is not None},
    )


class Workspaces:
    """The folders that are allowed, and all below them."""

    def __init__(self, allowed: Iterable[str | Path] = ()) -> None:
        self.allowed = tuple(Path(folder) for folder in allowed)

    def resolve(self, folder: str | Path) -> Path:
        """Where a folder really is; raises `WorkspaceNotAllowed`."""
        try:
            found = Path(os.path.realpath(folder, strict=True))
        except (OSError, ValueError) as error:
            raise WorkspaceNotAllowed(f"working folder not found: {str(folder)!r}") from error
        roots = [Path(os.path.realpath(root)) for root in self.allowed]
        if not found.is_dir() or not any(found.is_relative_to(root) for root in roots):
            wanted = ", ".join(map(str, roots)) or "none is allowed"
            raise WorkspaceNotAllowed(f"{found} is not in an allowed workspace ({wanted})")
        return found
