"""The requirements as tests of an author's own suite: import this where you want them.

Nothing is loaded unasked. The agent is tried once, at the first of the tests; each requirement is a
test of its own, which fails with the fact that shows why and is skipped where it does not apply.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import msgspec
import pytest

from factwire.conformance.case import Finding, Level, Result
from factwire.conformance.limits import TRIAL_SECONDS
from factwire.conformance.provider_checks import Make
from factwire.conformance.provider_minimums import MINIMUMS
from factwire.conformance.report import Report
from factwire.conformance.runner import try_provider
from factwire.conformance.screen_checks import ACCOUNT_TITLES, ORDER, SCREEN_CHECKS
from factwire.conformance.stream_checks import STREAM_CHECKS
from factwire.conformance.supervisor_checks import RULES

REQUIREMENTS: Final = (
    *(check.requirement for check in STREAM_CHECKS),
    *(check.requirement for check in SCREEN_CHECKS),
    *ACCOUNT_TITLES,
    ORDER,
    "provider.manifest",
    *(minimum.requirement for minimum in MINIMUMS),
    "provider.read-model",
    "provider.refs",
    "provider.repair",
    *RULES,
)
"""What an agent is held to, in the order of the tests."""


def conformance_suite(
    make: Make,
    *,
    prompts: Mapping[str, str] | None = None,
    seconds: float = TRIAL_SECONDS,
    level: Level = "runtime",
) -> Callable[..., None]:
    """A test function with one case a requirement; assign it to a name that begins with `test_`.

    `make` is called for an agent, once and again for a restart; prompts that are not given here are
    its `conformance_prompts`.
    """

    @cache
    def attempt() -> Report | Exception:
        name = getattr(make, "__name__", repr(make))
        try:
            return try_provider(make, name=name, prompts=prompts, seconds=seconds, level=level)
        except Exception as error:  # noqa: BLE001 - kept, so that no test tries it all again
            return error

    def report() -> Report:
        tried = attempt()
        if isinstance(tried, Exception):
            raise tried
        return tried

    # Few agents supervise a team, and the others need not hear of it.
    held_to = [name for name in REQUIREMENTS if level == "supervisor" or name not in RULES]

    @pytest.mark.parametrize("requirement", held_to)
    def test_conformance(requirement: str) -> None:
        found = [each for each in report().results if each.id == requirement]
        if not found:
            pytest.skip(f"beyond the level that was asked for, {level}")
        _assert_kept(found[0])

    return test_conformance


def _assert_kept(result: Result) -> None:
    if result.status == "not-applicable":
        pytest.skip(result.reason or "does not apply")
    if result.status == "failed":
        lines = [f"{result.title} ({result.id})", *map(_finding_text, result.findings)]
        if result.findings_omitted:
            lines.append(f"and {result.findings_omitted} more")
        pytest.fail("\n".join(lines), pytrace=False)


def _finding_text(finding: Finding) -> str:
    lines = [f"- {finding.message}"]
    if finding.path is not None:
        lines.append(f"  at {finding.path}")
    if finding.fact is not None:
        lines.append(f"  {_compact(finding.fact)}")
    return "\n".join(lines)


def _compact(fact: dict[str, Any]) -> str:
    return msgspec.json.encode(fact).decode()
