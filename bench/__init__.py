"""Benchmarks: every figure is a ratio against a baseline that ran beside it."""
