"""How a turn ends, as one table has it."""

from factwire.runtime import FAILURE_CATEGORIES
from factwire.runtime.turn_end import failure_payload


def test_a_failure_says_what_the_table_has_unless_told_otherwise():
    assert failure_payload("runtime_restarted") == {
        "failureCategory": "runtime_restarted",
        "message": FAILURE_CATEGORIES["runtime_restarted"],
        "recoveryHint": "Retry the turn.",
    }
    assert failure_payload("timeout", "the turn took more than 2 s", "Wait.") == {
        "failureCategory": "timeout",
        "message": "the turn took more than 2 s",
        "recoveryHint": "Wait.",
    }


def test_a_category_of_an_agent_gets_the_general_hint():
    assert failure_payload("quota", "") == {
        "failureCategory": "quota",
        "message": "",
        "recoveryHint": "Check the diagnostics of the turn.",
    }
