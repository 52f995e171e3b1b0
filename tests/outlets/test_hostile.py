"""What looks as if an outlet of ours had written it is believed no more than anything else."""

import random
from math import ceil
from typing import Any

import pytest

from factwire.facts import is_valid
from tests.outlets.gists import convert_back, encode_facts
from tests.outlets.stories import facts_on_file
from tests.sources.streams import find_defects
from tests.sources.test_mutations import INPUTS, ODD_SHARE, _mutate_item
from tests.trials import TRIAL_SECONDS, count_trials

STORIES = (
    "claude-code/approval-denied",
    "claude-code/background-subagent",
    "claude-code/subagent-text",
    "codex-app-server/patch",
    "fixture/coding-fixed",
    "fixture/state-delta",
    "fixture/team-review",
)


@pytest.mark.fuzz
@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.requirement("outlets.hostile")
@pytest.mark.parametrize("outlet", ["ag-ui", "ai-sdk", "ai-sdk-5"])
@pytest.mark.parametrize("name", STORIES)
def test_a_stream_with_odd_items_gives_valid_facts_and_never_raises(name: str, outlet: str):
    items = encode_facts(facts_on_file(name), outlet)
    for seed in range(count_trials(full=ceil(INPUTS / (ODD_SHARE * len(items))), share=40)):
        chance = random.Random(seed)
        odd = [
            _mutate_item(chance, item) if chance.random() < ODD_SHARE else item for item in items
        ]
        if chance.random() < 0.3:
            chance.shuffle(odd)
        facts = convert_back(odd, outlet)
        defects = find_defects(facts)
        assert is_valid(defects), (seed, defects[:3])


AFTER_A_TURN: dict[str, list[dict[str, Any]]] = {
    "ag-ui": [
        {"type": "RUN_STARTED", "runId": "back:turn-1"},
        {"type": "RUN_FINISHED", "runId": "back:turn-1"},
        {"type": "RUN_STARTED", "metadata": {"factwire": {"isAside": True}}},
        {
            "type": "SUBAGENT_STARTED",
            "subagentRunId": "sub",
            "metadata": {"factwire": {"turnId": "back:turn-1"}},
        },
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "One.", "subagentRunId": "sub"},
        {"type": "RUN_FINISHED"},
    ],
    "ai-sdk": [
        {"type": "start"},
        {"type": "finish"},
        {"type": "start", "messageMetadata": {"factwire": {"isAside": True}}},
        {
            "type": "data-factwire-subagent",
            "data": {"subagentId": "sub", "status": "started", "turnId": "back:turn-1"},
        },
        {
            "type": "data-factwire-subagent-text",
            "data": {"subagentId": "sub", "messageId": "m", "text": "One."},
        },
        {"type": "finish"},
    ],
}
"""A turn, and beside it a subagent that says the turn is its own."""


@pytest.mark.requirement("outlets.hostile")
@pytest.mark.parametrize("outlet", AFTER_A_TURN)
def test_a_subagent_that_claims_a_turn_which_has_ended_speaks_in_another(outlet: str):
    facts = convert_back(AFTER_A_TURN[outlet], outlet)
    assert is_valid(find_defects(facts))
    texts = [fact for fact in facts if fact.event_class == "model.completed"]
    assert [(fact.turn_id, fact.payload["text"]) for fact in texts] == [("back:turn-2", "One.")]
