"""The thread as an agent has it, held against what its facts say.

An agent may keep no thread of its own. One that does may not know more, or less, than it said.
"""

from collections.abc import Iterator
from typing import Final

from factwire.conformance.case import Finding, broken
from factwire.conformance.trials.trial import Trial
from factwire.facts import Fact, id_of
from factwire.projection import ThreadReadModel, thread_read_model

REQUIREMENT: Final = "provider.read-model"


def contradictions(trial: Trial) -> Iterator[Finding]:
    """What the read model says otherwise than the facts, or does not say."""
    model = trial.models[0]
    if model is None or trial.account.ending != "returned":
        # How a turn ended that others had to end, the agent need not know.
        return
    own = thread_read_model(trial.state)
    for message in (*_statuses(model, own), *_calls(model, own)):
        yield broken(REQUIREMENT, f"{trial.name}: {message}", level="runtime", fact=_last(trial))


def renamed(trial: Trial) -> Iterator[Finding]:
    """Ids in the read model that no fact knows, and a model that changes while nothing happens."""
    model, again = trial.models
    if model is None:
        return
    known = {id_of(fact, name) for fact in trial.facts for name in ("toolCallId", "actionId")}
    named = [call.tool_call_id for call in model.tool_calls]
    named += [action.action_id for action in model.pending_actions]
    unknown = [name for name in named if name not in known]
    messages = [f"{name} is in the read model and in no fact" for name in unknown]
    if model != again:
        messages.append("read twice, the thread differs")
    for message in messages:
        text = f"{trial.name}: {message}"
        yield broken("screen.stable-ids", text, level="projection", fact=_last(trial))


def _statuses(model: ThreadReadModel, own: ThreadReadModel) -> Iterator[str]:
    if model.status != own.status:
        yield f"the read model says {model.status}, the facts say {own.status}"
    told = None if model.last_outcome is None else model.last_outcome.status
    ended = None if own.last_outcome is None else own.last_outcome.status
    if told != ended:
        yield f"the read model says that the last turn ended {told}, the facts say {ended}"
    waits = {action.action_id for action in own.pending_actions}
    lost = waits - {action.action_id for action in model.pending_actions}
    yield from (f"{name} is open and not in the read model" for name in sorted(lost))


def _calls(model: ThreadReadModel, own: ThreadReadModel) -> Iterator[str]:
    told = {call.tool_call_id: call for call in model.tool_calls}
    if not told and own.tool_calls:
        yield f"none of {len(own.tool_calls)} calls is in the read model"
    for call in own.tool_calls:
        found = told.get(call.tool_call_id)
        if found is not None and found.state != call.state:
            yield f"call {call.tool_call_id} is {found.state}, the facts say {call.state}"
        if found is not None and found.output_ref != call.output_ref:
            yield f"call {call.tool_call_id} names {found.output_ref}, not {call.output_ref}"


def _last(trial: Trial) -> Fact | None:
    return trial.facts[-1] if trial.facts else None
