"""Standing rules: *always for this pattern*, said by a person and kept for a thread or a workspace.

A grant is a `policy.changed` fact, so that it survives a restart and everybody sees it. The attack:
an agent that grants itself something, by a fact that it emits. So a grant is sealed with the
runtime's own key over everything it says, and one whose seal does not fit counts for nothing. A
rule only answers what would be asked: what is denied stays denied.
"""

from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast

import msgspec

from factwire.facts import Fact
from factwire.journal import Journal
from factwire.runtime.action_cards import bind_place
from factwire.runtime.errors import RuntimeRefused
from factwire.runtime.policy import (
    Policy,
    PolicyRequest,
    PolicyRule,
    RuleError,
    evaluate,
    hash_request,
    parse_rule,
    propose_rule,
)
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


class Grant(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A rule, how long it lasts, and for which thread or folder."""

    rule: str
    lasts: GrantDuration
    place: str
    revoked: bool = False
    seal: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        return ("standing", self.rule, self.lasts, self.place, str(self.revoked))

    def payload(self) -> dict[str, Any]:
        what = "asked about again" if self.revoked else f"allowed for this {self.lasts}"
        decision = "ask" if self.revoked else "allow"
        payload = {"rule": self.rule, "decision": decision, "message": f"{self.rule} is {what}"}
        return {**payload, _FIELD: msgspec.to_builtins(self)}


class StandingRules:
    """The grants of a journal that this runtime made."""

    def __init__(self, journal: Journal, identity: Identity) -> None:
        self._identity = identity
        self._grants: dict[tuple[str, str], dict[str, PolicyRule]] = {}
        self._sealed: dict[tuple[str, str, str], Grant] = {}
        # Each runtime folds its own grants: those of others do not fit its key.
        kind = f"standing-rules:{identity.seal(('fold',))[:32]}"
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
        return msgspec.json.encode(list(self._sealed.values()))

    def restore(self, data: bytes) -> None:
        for grant in msgspec.json.decode(data, type=list[Grant]):
            self._take(grant)

    def clear(self) -> None:
        self._grants.clear()
        self._sealed.clear()

    def grant(
        self, rule: PolicyRule, lasts: GrantDuration, place: str, *, revoked: bool = False
    ) -> Grant:
        """A grant under seal."""
        open_grant = Grant(rule=str(rule), lasts=lasts, place=place, revoked=revoked)
        return msgspec.structs.replace(open_grant, seal=self._identity.seal(open_grant.words))

    def rules(self, thread_id: str, workspace: str) -> tuple[PolicyRule, ...]:
        """What holds on a thread in a workspace."""
        places = (("thread", thread_id), ("workspace", workspace))
        return tuple(rule for place in places for rule in self._grants.get(place, {}).values())

    def find_allowing_rule(
        self, policy: Policy, subject: RuleSubject, thread_id: str, workspace: Path
    ) -> PolicyRule | None:
        """The rule under which something needs no question."""
        rules = self.rules(thread_id, str(workspace.resolve()))
        request = to_policy_request(subject, workspace) if rules else None
        if request is None or not _is_allowed(policy, request, rules):
            return None
        return next((rule for rule in rules if _covers(rule, request)), None)

    def has_grant(self, grant: Grant) -> bool:
        """Whether a grant holds."""
        return grant.rule in self._grants.get((grant.lasts, grant.place), {})

    def note_change(self, fact: Fact, _: object) -> None:
        """Take in a fact that a thread has just written."""
        if fact.event_class == "policy.changed":
            self.note(fact)

    def _take(self, grant: Grant) -> None:
        """Let a grant hold, or hold no longer, if its seal fits."""
        try:
            rule = parse_rule(grant.rule)
        except RuleError:
            return
        if not self._identity.is_sealed(grant.words, grant.seal):
            return
        held = self._grants.setdefault((grant.lasts, grant.place), {})
        held.pop(grant.rule, None)
        self._sealed.pop((grant.lasts, grant.place, grant.rule), None)
        if not grant.revoked:
            held[grant.rule] = rule
            self._sealed[grant.lasts, grant.place, grant.rule] = grant


def require_proposed_rule(policy: Policy, subject: RuleSubject, workspace: Path) -> PolicyRule:
    """The narrowest rule that allows what was asked about; raises `NoRule`."""
    request = to_policy_request(subject, workspace)
    rule = None if request is None else propose_rule(request)
    if request is None or rule is None or not _is_allowed(policy, request, (rule,)):
        raise NoRule("no exact rule can allow this for later; approve it once")
    return rule


def to_policy_request(subject: RuleSubject, workspace: Path) -> PolicyRequest | None:
    """The request behind a question, if it can be had exactly: the hash says so."""
    command = _command(subject.command)
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
    return next((form for form in forms if hash_request(form) == subject.args_hash), None)


def _is_allowed(policy: Policy, request: PolicyRequest, rules: tuple[PolicyRule, ...]) -> bool:
    widened = msgspec.structs.replace(policy, allow=(*policy.allow, *rules))
    return evaluate(widened, request).decision == "allow"


def _covers(rule: PolicyRule, request: PolicyRequest) -> bool:
    """Whether it is this rule that allows a request, and not the mode, or another rule."""
    alone = evaluate(Policy(allow=(rule,)), request)
    return alone.decision == "allow" and alone.rule == str(rule)


def _command(value: Any) -> str | tuple[str, ...] | None:
    if isinstance(value, list):
        return tuple(map(str, cast("list[Any]", value)))
    return value if isinstance(value, str) and value else None
