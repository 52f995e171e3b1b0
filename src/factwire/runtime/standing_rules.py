"""Standing rules: *always for this pattern*, granted by a person for a thread or a workspace.

A grant is a `policy.changed` fact, so that it survives a restart and everybody sees it. It holds in
one folder, and until it expires or is revoked. The attack: an agent that grants itself something,
by a fact that it emits, or that repeats a grant which was revoked. So a grant has an id and is
sealed with the runtime's own key over all its fields; one whose seal does not fit, or whose id was
revoked, counts for nothing. A rule only answers what would be asked: what is denied stays denied.
"""

import os
import shutil
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast

import msgspec

from factwire.facts import Fact
from factwire.facts.resources import GrantedRule, RuleMatch
from factwire.journal import Journal
from factwire.runtime.action_cards import bind_place
from factwire.runtime.errors import RuntimeRefused
from factwire.runtime.policy import (
    Policy,
    PolicyRequest,
    PolicyRule,
    RuleError,
    evaluate,
    follow_links,
    hash_request,
    is_over_broad,
    parse_rule,
    propose_rule,
)
from factwire.runtime.policy.policy_rules import command_tokens
from factwire.runtime.runtime_identity import Identity
from factwire.runtime.thread_states import JournalFold

GrantDuration = Literal["thread", "workspace"]

_FIELD: Final = "standing"


class NoRule(RuntimeRefused):
    """What was approved cannot be said by one exact rule, or asking about it is demanded."""

    code = "no_standing_rule"


class RuleSubject(Protocol):
    """What was asked about, as an action or as the question itself."""

    @property
    def tool_name(self) -> str | None: ...

    @property
    def command(self) -> Any: ...

    @property
    def cwd(self) -> str | None: ...

    @property
    def args_hash(self) -> str | None: ...


class UnknownRule(RuntimeRefused):
    """No standing rule with this id holds."""

    code = "unknown_standing_rule"


class Grant(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A rule, how long it lasts, for which thread or workspace, and in which folder of it. Grants
    of versions that named no folder are none: what they allowed is asked about again.
    """

    rule_id: str
    rule: str
    lasts: GrantDuration
    place: str
    folder: str
    thread_id: str
    expires_at: str | None = None
    revoked: bool = False
    seal: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        names = (self.rule_id, self.rule, self.lasts, self.place, self.folder, self.thread_id)
        return ("standing", *names, self.expires_at or "", str(self.revoked))

    def payload(self) -> dict[str, Any]:
        until = f" until {self.expires_at}" if self.expires_at else ""
        what = "asked about again" if self.revoked else f"allowed for this {self.lasts}{until}"
        decision = "ask" if self.revoked else "allow"
        payload = {"rule": self.rule, "decision": decision, "message": f"{self.rule} is {what}"}
        return {**payload, _FIELD: msgspec.to_builtins(self)}

    def to_resource(self) -> GrantedRule:
        return GrantedRule(
            rule_id=self.rule_id,
            rule=self.rule,
            lasts=self.lasts,
            folder=self.folder,
            thread_id=self.thread_id,
            workspace=self.place if self.lasts == "workspace" else None,
            expires_at=self.expires_at,
        )


class StandingRules:
    """The grants of a journal that this runtime made; `clock` decides which have expired."""

    def __init__(self, journal: Journal, identity: Identity, clock: Callable[[], str]) -> None:
        self._identity = identity
        self._clock = clock
        self._grants: dict[str, Grant] = {}
        self._revoked: dict[str, Grant] = {}
        # Each runtime folds its own grants: those of others do not fit its key.
        kind = f"standing-grants:{identity.seal(('fold',))[:32]}"
        self._fold = JournalFold(journal, kind, ("policy.changed",), self)

    async def refresh(self) -> None:
        """Take in what was granted since."""
        await self._fold.refresh()

    def note(self, fact: Fact) -> None:
        """Take in a fact, if it is a grant of this runtime."""
        try:
            grant = msgspec.convert(fact.payload.get(_FIELD), Grant)
        except msgspec.ValidationError:
            return
        self._take(grant)

    def save(self) -> bytes:
        return msgspec.json.encode([*self._grants.values(), *self._revoked.values()])

    def restore(self, data: bytes) -> None:
        for grant in msgspec.json.decode(data, type=list[Grant]):
            self._take(grant)

    def clear(self) -> None:
        self._grants.clear()
        self._revoked.clear()

    def seal(self, grant: Grant) -> Grant:
        """The grant under seal; raises `NoRule` for a rule that allows too much."""
        if is_over_broad(parse_rule(grant.rule)):
            raise NoRule(f"{grant.rule} would allow too much; approve it once")
        return msgspec.structs.replace(grant, seal=self._identity.seal(grant.words))

    def list_grants(self) -> list[Grant]:
        """The grants that hold now, in the order in which they were made."""
        return [grant for grant in self._grants.values() if not self._is_expired(grant)]

    def revocation(self, rule_id: str) -> Grant:
        """What takes a grant back, under seal; raises `UnknownRule`."""
        grant = self._grants.get(rule_id)
        if grant is None or self._is_expired(grant):
            raise UnknownRule(f"no standing rule {rule_id} holds")
        return self.seal(msgspec.structs.replace(grant, revoked=True))

    def find_allowing_rule(
        self, policy: Policy, subject: RuleSubject, thread_id: str, workspace: Path
    ) -> PolicyRule | None:
        """The rule under which something needs no question."""
        rules = self._rules_in(thread_id, str(workspace.resolve()), folder_of(subject, workspace))
        request = to_policy_request(subject, workspace) if rules else None
        if request is None or not _is_allowed(policy, request, rules):
            return None
        return next((rule for rule in rules if _covers(rule, request)), None)

    def has_grant(self, grant: Grant) -> bool:
        """Whether a grant was taken in."""
        return grant.rule_id in self._grants

    def note_change(self, fact: Fact, _: object) -> None:
        """Take in a fact that a thread has just written."""
        if fact.event_class == "policy.changed":
            self.note(fact)

    def _rules_in(self, thread_id: str, workspace: str, folder: str) -> tuple[PolicyRule, ...]:
        """What holds on a thread in a folder of a workspace."""
        places = (("thread", thread_id), ("workspace", workspace))
        return tuple(
            parse_rule(grant.rule)
            for grant in self._grants.values()
            if (grant.lasts, grant.place) in places
            and grant.folder == folder
            and not self._is_expired(grant)
        )

    def _is_expired(self, grant: Grant) -> bool:
        expires = grant.expires_at
        return expires is not None and _time(expires) <= _time(self._clock())

    def _take(self, grant: Grant) -> None:
        """Let a grant hold, or hold no longer, if its seal fits."""
        try:
            rule = parse_rule(grant.rule)
        except RuleError:
            return
        if is_over_broad(rule) or not self._identity.is_sealed(grant.words, grant.seal):
            return
        if grant.revoked:
            self._revoked[grant.rule_id] = grant
            self._grants.pop(grant.rule_id, None)
        elif grant.rule_id not in self._revoked:
            self._grants[grant.rule_id] = grant


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def folder_of(subject: RuleSubject, workspace: Path) -> str:
    """Where something would be done: a rule that is made from it holds in this folder alone."""
    return os.path.realpath(subject.cwd or workspace)


def find_matches(
    rule: PolicyRule,
    folder: str,
    workspace: Path,
    earlier: Iterable[tuple[RuleSubject, RuleMatch]],
) -> list[RuleMatch]:
    """Which of some earlier requests a rule for a folder would have answered. One whose text was
    redacted cannot be had exactly, and is none of them.
    """
    found: list[RuleMatch] = []
    for subject, match in earlier:
        request = to_policy_request(subject, workspace)
        if request is None or folder_of(subject, workspace) != folder:
            continue
        if _covers(rule, request):
            found.append(match)
    return found


def list_editable_files(rule: PolicyRule, folder: str, writable: Iterable[str]) -> list[str]:
    """The files named by a rule's command that an agent may edit, because they lie in the workspace
    or in another folder that it may write to: their content is not covered by the rule.
    """
    roots = [os.path.realpath(root) for root in writable]
    words = [
        "".join(piece or "" for piece in token) for token in command_tokens(rule.pattern or "")
    ]
    # A name without a slash is a program of the path, where it comes first.
    program = shutil.which(words[0]) if words and "/" not in words[0] else None
    names = [program, *words[1:]] if program else words
    found = [os.path.realpath(os.path.join(folder, name)) for name in names if name]  # noqa: PTH118
    inside = [path for path in found if any(Path(path).is_relative_to(root) for root in roots)]
    return [path for path in dict.fromkeys(inside) if os.path.isfile(path)]  # noqa: PTH113


def require_proposed_rule(policy: Policy, subject: RuleSubject, workspace: Path) -> PolicyRule:
    """The narrowest rule that allows what was asked about; raises `NoRule`."""
    request = to_policy_request(subject, workspace)
    rule = None if request is None else propose_rule(request)
    if request is None or rule is None or not _is_allowed(policy, request, (rule,)):
        raise NoRule("no exact rule can allow this for later; approve it once")
    return rule


def to_policy_request(subject: RuleSubject, workspace: Path) -> PolicyRequest | None:
    """The request behind a question, if it can be had exactly: the hash says so. Links and names of
    programs are followed anew, because they may lead elsewhere than when a rule was granted.
    """
    command = to_command(subject.command)
    if command is None or not subject.tool_name:
        return None
    root = str(workspace.resolve())
    request = PolicyRequest(
        tool=subject.tool_name,
        workspace=root,
        cwd=subject.cwd,
        command=command,
    )
    # An agent may ask without binding its request to the place.
    forms = (bind_place(request), request)
    exact = next((form for form in forms if hash_request(form) == subject.args_hash), None)
    return None if exact is None else follow_links(exact)


def _is_allowed(policy: Policy, request: PolicyRequest, rules: tuple[PolicyRule, ...]) -> bool:
    widened = msgspec.structs.replace(policy, allow=(*policy.allow, *rules))
    return evaluate(widened, request).decision == "allow"


def _covers(rule: PolicyRule, request: PolicyRequest) -> bool:
    """Whether it is this rule that allows a request, and not the mode, or another rule."""
    alone = evaluate(Policy(allow=(rule,)), request)
    return alone.decision == "allow" and alone.rule == str(rule)


def to_command(value: Any) -> str | tuple[str, ...] | None:
    """The command in a field of a request: its words, or a text for a shell."""
    if isinstance(value, list | tuple):
        return tuple(map(str, cast("list[Any]", value)))
    return value if isinstance(value, str) and value else None
