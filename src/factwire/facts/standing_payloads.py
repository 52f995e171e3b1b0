"""Payloads that describe what holds from now on: a sandbox, a policy, the profile of a task.

A projection keeps such a description, so each has a type for all that is kept of it; whatever else
a provider puts beside it stays behind the fact.
"""

from factwire.facts.payloads import Payload, Permission


class SandboxBound(Payload):
    """One bound that a sandbox holds a program to, and by what means."""

    value: float | None = None
    by: str | None = None


class SandboxLack(Payload):
    """Something that was asked of a sandbox and does not hold, and why."""

    what: str | None = None
    reason: str | None = None


class SandboxTerms(Payload):
    """sandbox.applied: what a program may reach from here on, and what could not be had."""

    mode: str | None = None
    decision: str | None = None
    reason_code: str | None = None
    message: str | None = None
    tool: str | None = None
    tool_version: str | None = None
    network: bool | str | None = None
    root: str | None = None
    writable: list[str] | None = None
    readable: list[str] | None = None
    hidden: list[str] | None = None
    namespaces: list[str] | None = None
    capabilities: str | None = None
    new_session: bool | None = None
    dies_with_parent: bool | None = None
    nested_namespaces: bool | None = None
    system_call_filter: bool | None = None
    limits: dict[str, SandboxBound] | None = None
    not_applied: list[SandboxLack] | None = None


class StandingGrant(Payload):
    """A rule that was granted for longer than once."""

    rule: str | None = None
    lasts: str | None = None
    revoked: bool | None = None


class PolicyTerms(Permission):
    """policy.changed: the rule or mode that holds from here on, and who decided it."""

    rules: list[str] | None = None
    decided_by: str | None = None
    standing: StandingGrant | None = None


class TaskProfile(Payload):
    """task.profile.resolved: with what a task is worked on."""

    profile: str | None = None
    model: str | None = None
    provider: str | None = None
    role: str | None = None
    mode: str | None = None
    effort: str | None = None
    reason: str | None = None
