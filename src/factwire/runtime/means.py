"""Means: what a runtime lends to the agents that act through it.

An agent owns none of this. The policy that judges it, the programs it may run and the sandbox that
holds them are given to it with every turn, so that it can neither choose nor keep them.
"""

import os
from pathlib import Path

import msgspec

from factwire.journal.blobs import BlobStore, FileBlobs
from factwire.runtime.configuration.settings import OUTPUT_BYTES, Configuration, McpServer
from factwire.runtime.limits import APPROVAL_SECONDS
from factwire.runtime.policy import Policy
from factwire.runtime.processes import Processes
from factwire.runtime.sandbox import SandboxPolicy


class Means(msgspec.Struct, frozen=True, kw_only=True):
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


def blobs_of(configuration: Configuration) -> BlobStore:
    """Blobs lie beside a journal that is a file, else in the data folder."""
    scheme, _, rest = configuration.journal.partition(":")
    if scheme == "sqlite":
        return FileBlobs(f"{rest.partition('?')[0]}.blobs")
    return FileBlobs(Path(configuration.data, "blobs"))


def means_of(configuration: Configuration, blobs: BlobStore) -> Means:
    """The means that a configuration grants."""
    processes = Processes(configuration.data, workspaces=configuration.workspaces, blobs=blobs)
    wanted = configuration.sandbox
    scheme, _, rest = configuration.journal.partition(":")
    own = [os.path.realpath(configuration.data) + os.sep]
    if scheme == "sqlite":
        # Its log and its blobs have names that begin with its own.
        own.append(os.path.realpath(rest.partition("?")[0]))
    return Means(
        blobs=blobs,
        policy=configuration.policy.policy(),
        processes=processes,
        sandbox=SandboxPolicy(mode=wanted.mode, network=wanted.network),
        output_bytes=configuration.limits.output_bytes,
        approval_seconds=configuration.limits.approval_seconds,
        unwatched=tuple(own),
        mcp=configuration.mcp,
    )
