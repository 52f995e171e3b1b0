"""Facts of outside runtimes: read, held to the rules, redacted, and written as one batch or not.

A repeat is no news, by the ids of the facts. A thread that this Edge writes itself takes none from
outside: its sequence has one owner. What was hidden or moved on the way in is told in notes beside
the thread, so that the sender's own sequence stays as it was sent.
"""

from collections.abc import Sequence

import msgspec

from factwire.edge.edge_context import EdgeContext
from factwire.edge.limits import FACTS_IN_A_BATCH
from factwire.edge.records.thread_records import thread_of
from factwire.facts import (
    EDGE_CLASSES,
    Fact,
    Intake,
    IntakeResult,
    InvalidFacts,
    Issue,
    LifecycleError,
    UnreadableInput,
)
from factwire.facts.fact_rules import name_issues, rebase_issues
from factwire.facts.resources import Accepted
from factwire.journal import AppendRefused
from factwire.serving.asgi import Problem


async def take_facts(edge: EdgeContext, items: Sequence[bytes]) -> Accepted:
    """Write a batch, given as the JSON of each fact; raises `Problem`, having written nothing."""
    if not 1 <= len(items) <= FACTS_IN_A_BATCH:
        raise Problem(
            413 if items else 400,
            "batch_size",
            f"a batch must have 1 to {FACTS_IN_A_BATCH} facts, got {len(items)}",
        )
    taken = _read_facts(items)
    facts = [each.fact for each in taken]
    for fact in facts:
        _ensure_foreign(edge, fact)
    for each in taken:
        for blob in each.blobs:
            await edge.blobs.put(blob.content, kind=blob.ref.kind)
    notes = [_detach_note(note) for each in taken for note in each.notes]
    try:
        appended = await edge.journal.append([*facts, *notes])
    except AppendRefused as error:
        raise Problem(409, error.code, str(error)) from error
    await edge.wait_for_records(appended.cursor.seq)
    count = len(facts)
    repeated = sum(appended.repeated[:count])
    return Accepted(
        accepted=count - repeated,
        repeated=repeated,
        cursor=str(appended.cursor),
        seqs=appended.seqs[:count],
        sequences=appended.sequences[:count],
    )


def _read_facts(items: Sequence[bytes]) -> list[IntakeResult]:
    intake = Intake("collect")
    taken: list[IntakeResult] = []
    issues: list[Issue] = []
    for index, item in enumerate(items):
        path = f"$.facts[{index}]"
        try:
            taken.append(intake.feed(item))
            issues += rebase_issues(name_issues(taken[-1].fact), path)
        except InvalidFacts as error:
            issues += rebase_issues(error.issues, path)
        except (UnreadableInput, LifecycleError) as error:
            issues.append(Issue("schema_mismatch", path, str(error)))
    if issues:
        raise Problem(
            422,
            "invalid_facts",
            f"{len(issues)} issues; no fact of the batch was written",
            issues=[msgspec.to_builtins(issue) for issue in issues[:100]],
        )
    return taken


def _ensure_foreign(edge: EdgeContext, fact: Fact) -> None:
    own = edge.mint.runtime_id
    if fact.runtime_id == own:
        raise Problem(
            409,
            "runtime_id_taken",
            f"{own!r} is this Edge's own runtime id; use another one for your runtime",
        )
    if fact.event_class in EDGE_CLASSES:
        raise Problem(
            422,
            "class_reserved",
            f"{fact.event_class!r} is reserved for facts that an Edge records about itself",
        )
    thread_id = thread_of(fact)
    if thread_id is None:
        return
    row = edge.records.threads.get(thread_id)
    if row is not None and row.runtime_id == own:
        raise Problem(409, "thread_owned_elsewhere", f"thread {thread_id!r} belongs to this Edge")
    if thread_id in edge.records.deleted:
        raise Problem(410, "thread_deleted", f"thread {thread_id!r} was deleted")


def _detach_note(note: Fact) -> Fact:
    """A note that takes no place in the sequence of the thread it is about."""
    payload = {name: value for name, value in note.payload.items() if name != "threadId"}
    about = {"aboutThread": note.thread_id} if note.thread_id else {}
    return msgspec.structs.replace(note, thread_id=None, payload={**payload, **about})
