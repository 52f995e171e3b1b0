"""Findings: what was looked at, how it stands, and what to do where it does not."""

from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is stable. `fix` says what to do; only what fails makes the doctor fail."""

    name: str
    status: Literal["ok", "warn", "fail"]
    message: str
    fix: str | None = None


def ok(name: str, message: str) -> Finding:
    return Finding(name=name, status="ok", message=message)


def warn(name: str, message: str, fix: str) -> Finding:
    return Finding(name=name, status="warn", message=message, fix=fix)


def fail(name: str, message: str, fix: str) -> Finding:
    return Finding(name=name, status="fail", message=message, fix=fix)
