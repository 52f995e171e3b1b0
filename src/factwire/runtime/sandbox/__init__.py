"""The sandbox: what a program may see, reach and use, and what holds of it on this machine."""

from factwire.runtime.sandbox.sandbox import (
    Probe,
    Sandbox,
    SandboxPlan,
    describe_unenforced_rules,
    probe_sandbox,
)
from factwire.runtime.sandbox.sandbox_policy import (
    InvalidPolicy,
    SandboxError,
    SandboxLimits,
    SandboxMode,
    SandboxPolicy,
    SandboxRefused,
)
from factwire.runtime.sandbox.workspace_git import (
    BorrowedRepository,
    ChangedFile,
    GitOutput,
    NoRepository,
    WorkspaceDiff,
    borrow,
    diff_workspace,
)
from factwire.runtime.sandbox.worktree import (
    Worktree,
    WorktreeUnavailable,
    add_worktree,
    remove_worktree,
)
from factwire.runtime.sandbox.worktree_merge import (
    MergeAuthor,
    MergeConflicts,
    MergePlan,
    MergeRefused,
    MergeUnfinished,
    complete_merge,
    merge_worktree,
)

__all__ = [
    "BorrowedRepository",
    "ChangedFile",
    "GitOutput",
    "InvalidPolicy",
    "MergeAuthor",
    "MergeConflicts",
    "MergePlan",
    "MergeRefused",
    "MergeUnfinished",
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
    "complete_merge",
    "describe_unenforced_rules",
    "diff_workspace",
    "merge_worktree",
    "probe_sandbox",
    "remove_worktree",
]
