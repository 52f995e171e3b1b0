"""Trials: an agent driven through a real runtime, and what it did there."""

from factwire.conformance.trials.judging import Make, provider_results
from factwire.conformance.trials.minimums import MINIMUMS, PROMPTS, Minimum

__all__ = ["MINIMUMS", "PROMPTS", "Make", "Minimum", "provider_results"]
