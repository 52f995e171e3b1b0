"""Facts as somebody gave them, before anybody repaired anything, and whether they are valid.

Each fact by itself, the order of all, and what may follow what, by the rules of `factwire.facts`;
turns that end once and say how; tools that give nothing before a yes or after a no; final text that
is what streamed, under one id. What no stream holds is not judged. One result a requirement.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from factwire.conformance.case import Finding, Level, Result, build_finding, build_result
from factwire.facts import (
    INFORMATION,
    Fact,
    Issue,
    Item,
    OpenActions,
    StreamInspector,
    UnreadableInput,
    decode_json,
    id_of,
    read_item,
    redact_text,
    write_fact,
)
from factwire.facts.classes.class_tables import ACTION_CLOSERS, TURN_TERMINALS, status_of
from factwire.facts.open_work import LastIds, OpenWork
from factwire.facts.outcomes import CLASS_STATUSES, OPEN_STATUSES


class JudgedStream(msgspec.Struct, frozen=True, kw_only=True):
    """Items in the order in which they came. Where there are several streams, each has a name."""

    items: Sequence[object]
    begun: tuple[str, ...] = ()
    excused: frozenset[str] = frozenset()
    gaps_declared: bool = False
    typed: bool = False
    name: str = ""

    @property
    def prefix(self) -> str:
        """What a finding begins with, where there are several streams."""
        return f"{self.name}: " if self.name else ""


class ReadStream(msgspec.Struct, frozen=True, kw_only=True):
    """A stream of which every item that is a fact has been read."""

    stream: JudgedStream
    facts: tuple[Fact, ...]


_REQUIREMENTS: Final[dict[str, str]] = {
    "schema_mismatch": "stream.schema",
    "missing_scope_id": "stream.scope-ids",
    "sequence_gap": "stream.sequence",
    "secret_leak_risk": "stream.secrets",
    "large_payload_inline": "stream.size",
    "sequence_violation": "stream.lifecycle",
    "outcome_mismatch": "stream.status",
    "action_already_decided": "stream.decision",
}
_VIOLATIONS: Final = {
    "duplicate_event_id": "stream.ids",
    "turn_terminal_repeated": "stream.terminal",
    "action_already_decided": "stream.decision",
    "tool_result_after_denial": "stream.approval",
}
"""Violations of the lifecycle that have a requirement of their own."""

_INPUT: Final = re.compile(r"\.(?:input|attachments)\b")
_INDEX: Final = re.compile(r"\[(\d+)\]")


def read_stream(stream: JudgedStream) -> tuple[ReadStream, list[Finding]]:
    """The facts of a stream, and every rule that one of them breaks."""
    inspector = StreamInspector(gaps_declared=stream.gaps_declared)
    facts: list[Fact] = []
    findings: list[Finding] = []
    for index, raw in enumerate(stream.items):
        item, issues = _to_item(raw, index, typed=stream.typed)
        if item is not None:
            issues += inspector.feed(item)
            fact = read_item(item).fact
            facts += [] if fact is None else [fact]
        else:
            inspector.facts += 1
        findings += _to_findings(issues, stream)
    findings += _to_findings(inspector.finish(), stream)
    return ReadStream(stream=stream, facts=tuple(facts)), findings


def _to_item(item: object, index: int, *, typed: bool) -> tuple[Item | None, list[Issue]]:
    """The item as something that can be inspected, or why it is no fact whatever else it is."""
    message = f"expected a fact, got {type(item).__name__}"
    if isinstance(item, Fact):
        issues = _type_issues(item)
        located = [Issue(i.code, f"$[{index}]{i.path[1:]}", i.message) for i in issues]
        return (None if issues else item), located
    if isinstance(item, (bytes, str)) and not typed:
        try:
            decode_json(item)
        except UnreadableInput as error:
            return None, [Issue("schema_mismatch", f"$[{index}]", error.reason)]
        return item, []
    if isinstance(item, Mapping) and not typed:
        return cast("Mapping[str, Any]", item), []
    return None, [Issue("schema_mismatch", f"$[{index}]", message)]


def _type_issues(fact: Fact) -> list[Issue]:
    """A fact made in Python is checked by nobody; as JSON it is. A runtime gives its sequence."""
    try:
        written = write_fact(fact)
    except (TypeError, ValueError, RecursionError) as error:
        return [Issue("schema_mismatch", "$", f"cannot be written as JSON: {error}")]
    if written.get("sequence") is None:
        written["sequence"] = 0
    return read_item(written, "facts").issues


def _to_findings(issues: list[Issue], stream: JudgedStream) -> Iterator[Finding]:
    for issue in issues:
        if issue.code not in INFORMATION:
            yield _to_finding(issue, stream)


def _to_finding(issue: Issue, stream: JudgedStream) -> Finding:
    place = _INDEX.search(issue.path)
    shown = shown_item(stream.items[int(place[1])]) if place else None
    code, _, _ = issue.message.partition(":")
    return Finding(
        requirement=_requirement_of(issue, code),
        message=f"{stream.prefix}{issue.message}",
        level="facts",
        fact_id=_id_of(shown),
        fact=shown,
        path=issue.path,
    )


def _requirement_of(issue: Issue, violation: str) -> str:
    """The requirement that an issue is about; every rule about inputs belongs to one."""
    if _INPUT.search(issue.path) and issue.code != "secret_leak_risk":
        return "stream.input"
    return _VIOLATIONS.get(violation) or _REQUIREMENTS.get(issue.code, "stream.schema")


def shown_item(item: object) -> dict[str, Any] | None:
    """An item as an object to show, where it is one."""
    if isinstance(item, Fact):
        try:
            return write_fact(item)
        except (TypeError, ValueError, RecursionError):
            return {"id": str(item.id), "eventClass": str(item.event_class)}
    if isinstance(item, (bytes, str)):
        try:
            item = decode_json(item)
        except UnreadableInput:
            return None
    return dict(cast("Mapping[str, Any]", item)) if isinstance(item, Mapping) else None


def _id_of(shown: dict[str, Any] | None) -> str | None:
    found = None if shown is None else shown.get("id", shown.get("eventId"))
    return found if isinstance(found, str) else None


_OUTPUT: Final = frozenset({"tool.output.delta", "tool.result"})
_DENIALS: Final = frozenset({"deny", "denied", "reject", "rejected"})


def check_approvals(read: ReadStream) -> Iterator[Finding]:
    """Output of calls that wait for a decision or were denied."""
    waiting: dict[str, str] = {}
    denied: set[str] = set()
    for fact in read.facts:
        call, action = id_of(fact, "toolCallId"), id_of(fact, "actionId") or ""
        if fact.event_class == "action.required" and call is not None:
            waiting[action] = call
        elif fact.event_class in ACTION_CLOSERS:
            decided_call = waiting.pop(action, None)
            denied |= {decided_call} if decided_call is not None and not _allows(fact) else set()
        elif fact.event_class == "tool.started" and call is not None:
            denied.discard(call)
        elif fact.event_class in _OUTPUT and call is not None:
            reason = _reason(call, waiting, denied)
            if reason:
                message = f"{read.stream.prefix}{fact.event_class} of {call}, which {reason}"
                yield build_finding("stream.approval", message, level="facts", fact=fact)


def _reason(call: str, waiting: dict[str, str], denied: set[str]) -> str | None:
    if call in waiting.values():
        return "waits for a decision"
    return "was not allowed" if call in denied else None


def _allows(fact: Fact) -> bool:
    return fact.event_class == "action.resolved" and fact.payload.get("decision") not in _DENIALS


def check_decisions(read: ReadStream) -> Iterator[Finding]:
    """Requests that are answered again, the other way."""
    answers: dict[str, str] = {}
    for fact in read.facts:
        action = id_of(fact, "actionId")
        if action is None:
            continue
        if fact.event_class == "action.required":
            answers.pop(action, None)
        elif fact.event_class in ACTION_CLOSERS:
            answer = str(fact.payload.get("decision") or fact.event_class)
            first = answers.setdefault(action, answer)
            if answer != first:
                message = f"{read.stream.prefix}{action} was answered {first}, and then {answer}"
                yield build_finding("stream.decision", message, level="facts", fact=fact)


def check_inputs(read: ReadStream) -> Iterator[Finding]:
    """Attachments that are bytes, local paths or file addresses instead of refs."""
    for fact in read.facts:
        payload = {**fact.extra, **fact.payload}
        for name in ("input", "attachments"):
            rows: object = payload.get(name)
            for place, row in enumerate(
                cast("list[object]", rows) if isinstance(rows, list) else ()
            ):
                reason = _inline_content(row)
                if reason:
                    message = f"{read.stream.prefix}{name}[{place}] {reason}; expected a ref"
                    path = f"$.payload.{name}[{place}]"
                    yield build_finding(
                        "stream.input", message, level="facts", fact=fact, path=path
                    )


_LOCAL_FIELDS: Final = ("ref", "url", "uri", "path", "href", "source", "file")
_BYTE_FIELDS: Final = ("bytes", "data", "base64", "content")
_LOCAL: Final = re.compile(r"(?:file:|/|~|\.\.?[/\\]|[A-Za-z]:[/\\]|\\\\)")


def _inline_content(row: object) -> str | None:
    if not isinstance(row, Mapping):
        return None
    fields = cast("Mapping[str, Any]", row)
    if fields.get("type") == "text":
        return None
    for name in _LOCAL_FIELDS:
        value = fields.get(name)
        if isinstance(value, str) and _LOCAL.match(value.strip()):
            return "is a local path or a file address"
        if isinstance(value, str) and value.strip()[:5].lower() == "data:":
            return "holds its content"
    if any(isinstance(fields.get(name), str) and fields[name] for name in _BYTE_FIELDS):
        return "holds its content"
    return None


_ENDED: Final = frozenset({"completed", "failed", "canceled"})
_BEGINNINGS: Final = frozenset(
    {"submitted", "started", "requested", "required", "args", "delta", "progress"}
)
"""Last words of classes that end nothing."""

_BEGUN: Final = frozenset(
    {"turn", "model", "reasoning", "tool", "action", "task", "subagent", "command", "patch", "test"}
)
"""Families of things that begin and end; other facts are over with themselves."""

_WORK: Final = frozenset({"model", "reasoning", "tool", "command", "patch", "test", "file"})


def check_turn_ends(read: ReadStream) -> Iterator[Finding]:
    """A turn that was begun ends, or waits for a person."""
    last: dict[str, Fact] = {}
    begun = dict.fromkeys(read.stream.begun)
    ended: set[str | None] = set()
    actions = OpenActions()
    for fact in read.facts:
        actions.feed(fact)
        turn = id_of(fact, "turnId")
        if turn is not None:
            last[turn] = fact
        if fact.event_class == "turn.started" and turn is not None and not read.stream.begun:
            begun[turn] = None
        elif fact.event_class in TURN_TERMINALS:
            ended.add(turn)
    for turn in begun:
        if turn in ended or turn in read.stream.excused or actions.of_turn(turn):
            continue
        message = f"{read.stream.prefix}turn {turn} has no turn.completed, failed or canceled"
        yield build_finding("stream.terminal", message, level="facts", fact=last.get(turn))


def check_one_turn(read: ReadStream) -> Iterator[Finding]:
    """No turn starts on a thread while another one is active there; subagents have their own."""
    active: dict[str | None, str | None] = {}
    work: dict[str | None, OpenWork] = {}
    for fact in read.facts:
        thread, turn = id_of(fact, "threadId"), id_of(fact, "turnId")
        if not work.setdefault(thread, OpenWork(LastIds(len(read.facts)))).follow_turn(fact):
            continue
        if fact.event_class == "turn.started":
            if active.get(thread) not in (None, turn):
                message = f"{read.stream.prefix}turn {turn} starts while {active[thread]} runs"
                yield build_finding("stream.one-turn", message, level="facts", fact=fact)
            active[thread] = turn
        elif fact.event_class in TURN_TERMINALS and active.get(thread) == turn:
            active[thread] = None


def check_failures(read: ReadStream) -> Iterator[Finding]:
    """A failed turn tells machines which kind of failure it was, and people what to do."""
    for fact in read.facts:
        if fact.event_class != "turn.failed":
            continue
        for name in ("failureCategory", "recoveryHint"):
            if not isinstance(fact.payload.get(name), str) or not fact.payload[name]:
                message = f"{read.stream.prefix}a failed turn needs payload.{name}"
                path = f"$.payload.{name}"
                yield build_finding("stream.failure", message, level="facts", fact=fact, path=path)


def check_statuses(read: ReadStream) -> Iterator[Finding]:
    """Nothing is over while it goes on, or goes on once it is over. That an end agrees with its
    class is validated.
    """
    for fact in read.facts:
        name = fact.event_class or ""
        words = name.split(".")
        begins = words[0] in _BEGUN and words[-1] in _BEGINNINGS
        ends = CLASS_STATUSES.get(name) in _ENDED and fact.status != status_of(name)
        if (begins and fact.status in _ENDED) or (ends and fact.status in OPEN_STATUSES):
            message = f"{read.stream.prefix}{fact.event_class} cannot have the status {fact.status}"
            yield build_finding("stream.status", message, level="facts", fact=fact, path="$.status")
    yield from _check_early_ends(read)


def _check_early_ends(read: ReadStream) -> Iterator[Finding]:
    claimed: dict[str | None, Fact] = {}
    for fact in read.facts:
        turn, family = id_of(fact, "turnId"), (fact.event_class or "").partition(".")[0]
        if fact.event_class == "run.status" and fact.payload.get("status") in _ENDED:
            claimed.setdefault(turn, fact)
        elif family in _WORK and turn in claimed:
            claim = claimed.pop(turn)
            message = (
                f"{read.stream.prefix}run.status says {claim.payload['status']}, "
                f"and {fact.event_class} follows"
            )
            path = "$.payload.status"
            yield build_finding("stream.status", message, level="facts", fact=claim, path=path)


_EXCERPT: Final = 60
_SNAPSHOTS: Final = frozenset({"messages.snapshot", "snapshot.updated", "state.snapshot"})

Key = tuple[str | None, str | None, str | None, str | None]


class _Part(msgspec.Struct):
    """A part as it streams. `holes` is how many gaps there were when it began."""

    pieces: list[str] = msgspec.field(default_factory=list[str])
    holes: int = 0
    final: Fact | None = None
    closed: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)


Speakers = dict[tuple[str | None, str | None], dict[Key, _Part]]
"""Turn and subagent → the parts in which they speak."""


def check_final_texts(read: ReadStream) -> Iterator[Finding]:
    """Final texts that are not what streamed; of one that lost pieces on the way nobody knows."""
    parts: dict[Key, _Part] = {}
    holes = _GapCounter()
    for fact in read.facts:
        before = holes.count
        holes.feed(fact)
        if not _is_text(fact):
            continue
        part = parts.setdefault(_part_key(fact), _Part(holes=before))
        if fact.event_class == "model.delta":
            _add_delta(part, fact)
        else:
            whole = part.holes == holes.count
            yield from _check_final(part, fact, read.stream.prefix) if whole else ()
            part.closed, part.holes = True, holes.count


def check_stable_ids(read: ReadStream) -> Iterator[Finding]:
    """Text that streamed under one id and became final under another."""
    speakers: Speakers = {}
    for fact in read.facts:
        if not _is_text(fact):
            yield from _check_snapshot(fact, speakers, read.stream.prefix)
            continue
        key = _part_key(fact)
        parts = speakers.setdefault(key[:2], {})
        part = parts.setdefault(key, _Part())
        if fact.event_class == "model.delta":
            _add_delta(part, fact)
        else:
            part.final, part.closed = fact, True
            yield from _check_renamed(part, fact, parts, read.stream.prefix)


class _GapCounter:
    """Counts places at which facts are missing, or are said to be."""

    def __init__(self) -> None:
        self.count = 0
        self._last: dict[str | None, int] = {}

    def feed(self, fact: Fact) -> None:
        thread, sequence = fact.thread_id, fact.sequence
        last = self._last.get(thread)
        if sequence is not None:
            self.count += last is not None and sequence != last + 1
            self._last[thread] = sequence
        self.count += fact.event_class == "stream.gap.detected"


def _part_key(fact: Fact) -> Key:
    ids = ("turnId", "subagentId", "messageId", "partId")
    turn, subagent, message, part = (id_of(fact, name) for name in ids)
    return turn, subagent, message, part


def _is_text(fact: Fact) -> bool:
    return fact.event_class in ("model.delta", "model.completed")


def _add_delta(part: _Part, fact: Fact) -> None:
    delta, whole = fact.payload.get("delta"), fact.payload.get("text")
    if part.closed:
        # Text behind a final text is the message's next text.
        part.pieces, part.closed, part.final = [], False, None
    if isinstance(delta, str):
        part.pieces.append(delta)
    elif isinstance(whole, str):
        part.pieces = [whole]


def _check_final(part: _Part, fact: Fact, prefix: str) -> Iterator[Finding]:
    text = fact.payload.get("text")
    if isinstance(text, str) and part.pieces and not part.closed and part.text != text:
        message = f"{prefix}{_excerpt(part.text)} streamed, and {_excerpt(text)} is final"
        path = "$.payload.text"
        yield build_finding("screen.final-text", message, level="projection", fact=fact, path=path)
    elif part.closed and isinstance(text, str) and text:
        message = f"{prefix}{_excerpt(text)} is final for the second time"
        yield build_finding("screen.final-text", message, level="projection", fact=fact)


def _check_renamed(
    part: _Part, fact: Fact, parts: dict[Key, _Part], prefix: str
) -> Iterator[Finding]:
    text = fact.payload.get("text")
    if not isinstance(text, str) or not text or part.pieces:
        return
    for key, other in parts.items():
        if other is not part and not other.closed and other.text == text:
            final = _part_key(fact)[2]
            message = f"{prefix}{_excerpt(text)} streamed as {key[2]} and is final as {final}"
            yield build_finding("screen.stable-ids", message, level="projection", fact=fact)


def _check_snapshot(fact: Fact, speakers: Speakers, prefix: str) -> Iterator[Finding]:
    rows: object = fact.payload.get("messages") if fact.event_class in _SNAPSHOTS else None
    if not isinstance(rows, list):
        return
    parts = {key: part for own in speakers.values() for key, part in own.items()}
    ids_by_text = {
        _text_of(part): key[2] for key, part in parts.items() if key[2] and _text_of(part)
    }
    known = {key[2] for key in parts}
    for row in cast("list[object]", rows):
        if not isinstance(row, Mapping):
            continue
        fields = cast("Mapping[str, Any]", row)
        message_id, text = fields.get("messageId", fields.get("id")), fields.get("text")
        if message_id not in known and isinstance(text, str) and text in ids_by_text:
            first = ids_by_text[text]
            message = f"{prefix}{_excerpt(text)} was {first} and is {message_id} in a snapshot"
            yield build_finding("screen.stable-ids", message, level="projection", fact=fact)


def _text_of(part: _Part) -> str:
    final = part.final.payload.get("text") if part.final is not None else None
    return final if isinstance(final, str) else part.text


def _excerpt(text: str) -> str:
    """The beginning of a text. Half a secret is no longer known for one: they go first."""
    shown = redact_text(text)[0]
    return repr(shown if len(shown) <= _EXCERPT else f"{shown[:_EXCERPT]}…")


NO_FACTS: Final = "not judged: no fact was given"


class StreamCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement of streams. Without `check` its findings come with the reading itself;
    `about` says which facts it is about, `none` what to say where there are none.
    """

    requirement: str
    title: str
    level: Level = "facts"
    check: Callable[[ReadStream], Iterable[Finding]] | None = None
    about: Callable[[Fact], bool] | None = None
    none: str = ""


def _classes(*prefixes: str) -> Callable[[Fact], bool]:
    return lambda fact: (fact.event_class or "").startswith(prefixes)


STREAM_CHECKS: Final = (
    StreamCheck(requirement="stream.schema", title="Fields and types"),
    StreamCheck(requirement="stream.scope-ids", title="Ids that classes need"),
    StreamCheck(requirement="stream.ids", title="Unique ids"),
    StreamCheck(
        requirement="stream.sequence",
        title="Order without gaps",
        about=lambda fact: fact.sequence is not None,
        none="no fact states a sequence; the runtime gives them",
    ),
    StreamCheck(requirement="stream.lifecycle", title="What may follow what"),
    StreamCheck(
        requirement="stream.terminal",
        title="Every turn ends once",
        check=check_turn_ends,
        about=_classes("turn."),
        none="no turn begins",
    ),
    StreamCheck(requirement="stream.status", title="No end that is none", check=check_statuses),
    StreamCheck(
        requirement="stream.approval",
        title="Nothing before a yes or after a no",
        check=check_approvals,
        about=_classes("action.required"),
        none="nobody is asked",
    ),
    StreamCheck(
        requirement="stream.one-turn",
        title="One turn at a time",
        check=check_one_turn,
        about=_classes("turn."),
        none="no turn begins",
    ),
    StreamCheck(
        requirement="stream.failure",
        title="Failures with category and hint",
        check=check_failures,
        about=_classes("turn.failed"),
        none="no turn fails",
    ),
    StreamCheck(requirement="stream.secrets", title="No secrets"),
    StreamCheck(requirement="stream.size", title="Nothing big inline"),
    StreamCheck(
        requirement="stream.input",
        title="Attachments by ref",
        check=check_inputs,
    ),
    StreamCheck(
        requirement="stream.decision",
        title="One decision for a request",
        check=check_decisions,
        about=_classes("action."),
        none="nobody is asked",
    ),
    StreamCheck(
        requirement="screen.final-text",
        title="Final text is what streamed",
        level="projection",
        check=check_final_texts,
        about=_classes("model.completed"),
        none="no text becomes final",
    ),
    StreamCheck(
        requirement="screen.stable-ids",
        title="One id for one message",
        level="projection",
        check=check_stable_ids,
        about=_classes("model."),
        none="there is no text",
    ),
)


def check_streams(
    streams: Sequence[JudgedStream], more: Iterable[Finding] = ()
) -> tuple[list[Result], list[ReadStream]]:
    """A result for each requirement of streams, and the facts that could be read. `more` are
    findings about the same requirements that were made elsewhere.
    """
    reads: list[ReadStream] = []
    findings = list(more)
    for stream in streams:
        read, found = read_stream(stream)
        reads.append(read)
        findings += found
    return [_stream_result(check, reads, findings) for check in STREAM_CHECKS], reads


def _stream_result(check: StreamCheck, reads: list[ReadStream], findings: list[Finding]) -> Result:
    found = [finding for finding in findings if finding.requirement == check.requirement]
    if check.check is not None:
        found += [finding for read in reads for finding in check.check(read)]
    facts = (fact for read in reads for fact in read.facts)
    absent = check.about is not None and not any(map(check.about, facts))
    has_items = any(read.stream.items for read in reads)
    return build_result(
        check.requirement,
        check.title,
        check.level,
        (check.requirement,),
        found,
        reason=NO_FACTS if not has_items else check.none if absent else None,
    )
