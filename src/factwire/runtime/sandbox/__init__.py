"""The sandbox: what a program may see, reach and use, and what holds of it on this machine."""

from factwire.runtime.sandbox.diff import ChangedFile, WorkspaceDiff, workspace_diff
from factwire.runtime.sandbox.errors import InvalidPolicy, SandboxError, SandboxRefused
from factwire.runtime.sandbox.git import BorrowedRepository, GitOutput, borrow
from factwire.runtime.sandbox.git_layout import NoRepository
from factwire.runtime.sandbox.plan import SandboxPlan
from factwire.runtime.sandbox.policy import SandboxLimits, SandboxMode, SandboxPolicy
from factwire.runtime.sandbox.probe import Probe, probe
from factwire.runtime.sandbox.sandbox import Sandbox
from factwire.runtime.sandbox.worktree import (
    Worktree,
    WorktreeUnavailable,
    add_worktree,
    remove_worktree,
)

__all__ = [
    "BorrowedRepository",
    "ChangedFile",
    "GitOutput",
    "InvalidPolicy",
    "NoRepository",
    "Probe",
    "Sandbox",
    "SandboxError",
    "SandboxLimits",
    "SandboxMode",
    "SandboxPlan",
    "SandboxPolicy",
    "SandboxRefused",
    "WorkspaceDiff",
    "Worktree",
    "WorktreeUnavailable",
    "add_worktree",
    "borrow",
    "probe",
    "remove_worktree",
    "workspace_diff",
]
