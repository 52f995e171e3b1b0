"""What a sandbox refuses, and how it says so.

    SandboxError
    ├── SandboxRefused        it is required and cannot be had; nothing was started
    ├── InvalidPolicy         a folder is both to be worked in and to be hidden
    └── WorktreeUnavailable   no git worktree can be made of a folder (in `worktree`)

Codes are stable; messages may change. `reason_code` is what the `sandbox.blocked` fact says.
"""


class SandboxError(Exception):
    """The root of every error that `factwire.runtime.sandbox` raises; `code` is stable."""

    code: str = "sandbox_error"


class SandboxRefused(SandboxError):
    code = "sandbox_refused"

    def __init__(self, reason_code: str, message: str) -> None:
        self.reason_code = reason_code
        super().__init__(
            f"a sandbox is required and cannot be had: {message}; "
            "install or allow bubblewrap, or set the policy to prefer"
        )


class InvalidPolicy(SandboxError):
    code = "invalid_policy"
