"""Write the conformance data down: `python -m tools.conformance.record` renews fixtures
and scenarios.

The same scripts give the same bytes, so that a difference is a change of a script.
"""

import sys
from pathlib import Path
from typing import Final

from . import (
    acceptance_scenarios,
    action_fixtures,
    boundary_scenarios,
    delivery_scenarios,
    provider_fixtures,
    provider_scenarios,
    rule_scenarios,
    stream_fixtures,
    team_fixtures,
    work_fixtures,
)

PACKAGE: Final = Path(__file__).resolve().parents[2] / "src" / "factwire" / "conformance"

FIXTURES: Final = (
    *provider_fixtures.FIXTURES,
    *action_fixtures.FIXTURES,
    *work_fixtures.FIXTURES,
    *team_fixtures.FIXTURES,
    *stream_fixtures.FIXTURES,
)

SCENARIOS: Final = (
    *acceptance_scenarios.SCENARIOS,
    *provider_scenarios.SCENARIOS,
    *rule_scenarios.SCENARIOS,
    *boundary_scenarios.SCENARIOS,
    *delivery_scenarios.SCENARIOS,
)


def documents() -> dict[str, bytes]:
    """Every file of the conformance data, by its place in the package."""
    recorded = {f"fixtures/{script.name}.json": script.text() for script in FIXTURES}
    return recorded | {f"scenarios/{script.name}.json": script.text() for script in SCENARIOS}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE
    for name, text in documents().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    print(f"{len(documents())} documents")


if __name__ == "__main__":
    main()
