"""Hypothesis profiles (quick while writing, repeatable in CI, deep on demand), and the order."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

# No deadline: a busy machine is not a failing test.
settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=200,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    deadline=None,
    max_examples=5_000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow ones first, so that no worker is left alone with one of them at the end."""
    items.sort(key=lambda item: item.get_closest_marker("fault") is None)


def pytest_collection_finish() -> None:
    """The tests themselves, a million objects, are not searched for garbage while they run."""
    gc.collect()
    gc.freeze()
