"""Judging streams: one result a requirement, over all streams that somebody gave.

What no stream holds is not judged: a requirement about failed turns says nothing about streams in
which none failed, and no requirement says anything about an agent that gave nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from factwire.conformance.case import Finding, Level
from factwire.conformance.results import Result, result
from factwire.conformance.streams.approvals import approvals
from factwire.conformance.streams.endings import failures, one_turn, statuses, turn_ends
from factwire.conformance.streams.stream import Read, Stream
from factwire.conformance.streams.validity import read_stream
from factwire.conformance.streams.wording import final_texts, stable_ids
from factwire.facts import Fact

NO_FACTS: Final = "not judged: no fact was given"


class StreamCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement of streams. Without `check` its findings come with the reading itself;
    `about` says which facts it is about, `none` what to say where there are none.
    """

    requirement: str
    title: str
    level: Level = "facts"
    check: Callable[[Read], Iterable[Finding]] | None = None
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
        check=turn_ends,
        about=_classes("turn."),
        none="no turn begins",
    ),
    StreamCheck(requirement="stream.status", title="No end that is none", check=statuses),
    StreamCheck(
        requirement="stream.approval",
        title="Nothing before a yes or after a no",
        check=approvals,
        about=_classes("action.required"),
        none="nobody is asked",
    ),
    StreamCheck(
        requirement="stream.one-turn",
        title="One turn at a time",
        check=one_turn,
        about=_classes("turn."),
        none="no turn begins",
    ),
    StreamCheck(
        requirement="stream.failure",
        title="Failures with category and hint",
        check=failures,
        about=_classes("turn.failed"),
        none="no turn fails",
    ),
    StreamCheck(requirement="stream.secrets", title="No secrets"),
    StreamCheck(requirement="stream.size", title="Nothing big inline"),
    StreamCheck(
        requirement="screen.final-text",
        title="Final text is what streamed",
        level="projection",
        check=final_texts,
        about=_classes("model.completed"),
        none="no text becomes final",
    ),
    StreamCheck(
        requirement="screen.stable-ids",
        title="One id for one message",
        level="projection",
        check=stable_ids,
        about=_classes("model."),
        none="there is no text",
    ),
)


def judged(
    streams: Sequence[Stream], more: Iterable[Finding] = ()
) -> tuple[list[Result], list[Read]]:
    """A result for each requirement of streams, and the facts that could be read. `more` are
    findings about the same requirements that were made elsewhere.
    """
    reads: list[Read] = []
    findings = list(more)
    for stream in streams:
        read, found = read_stream(stream)
        reads.append(read)
        findings += found
    return [_judged(check, reads, findings) for check in STREAM_CHECKS], reads


def _judged(check: StreamCheck, reads: list[Read], findings: list[Finding]) -> Result:
    found = [finding for finding in findings if finding.requirement == check.requirement]
    if check.check is not None:
        found += [finding for read in reads for finding in check.check(read)]
    facts = (fact for read in reads for fact in read.facts)
    absent = check.about is not None and not any(map(check.about, facts))
    given = any(read.stream.items for read in reads)
    return result(
        check.requirement,
        check.title,
        check.level,
        (check.requirement,),
        found,
        reason=NO_FACTS if not given else check.none if absent else None,
    )
