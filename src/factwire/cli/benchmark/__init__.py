"""`factwire benchmark`: the trials of a benchmark, and those of two runs compared."""

from factwire.cli.benchmark.command import benchmark

__all__ = ["benchmark"]
