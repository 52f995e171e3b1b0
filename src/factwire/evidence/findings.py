"""One difference between a pack and what it says of itself: where, and what it means."""

from typing import Final

import msgspec

FINDINGS: Final = {
    "entry_changed": "bytes of an entry are not those that were written",
    "entry_truncated": "bytes of an entry are missing",
    "entry_extended": "bytes were added at the end of an entry",
    "entry_missing": "an entry that the manifest lists is not there",
    "entry_added": "an entry that the manifest does not list is there",
    "signature_invalid": "the manifest is not the one that was signed with this key",
    "signature_missing": "a signature is demanded, and the pack has none",
    "signer_untrusted": "the key that signed the pack is not among the trusted ones",
    "facts_malformed": "a line is no fact",
    "count_differs": "the manifest counts other facts than there are",
    "blob_misnamed": "a blob's contents are not those that its name stands for",
    "derived_differs": "what was derived from the facts does not follow from them",
}
"""Code → what it means. These make a pack fail verification; codes are stable."""


OF_SIGNER: Final = frozenset({"signature_missing", "signer_untrusted"})
"""Codes that say whose pack it is not; about its contents they say nothing."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """`first` and `last` are bytes of the entry, counted from 0 and both included."""

    code: str
    message: str
    entry: str | None = None
    first: int | None = None
    last: int | None = None

    def __str__(self) -> str:
        return self.message


def changed(entry: str, first: int, last: int) -> Finding:
    """Bytes that differ."""
    message = f"{entry}: bytes {first}–{last} are not those that were written"
    return Finding(code="entry_changed", entry=entry, first=first, last=last, message=message)


def cut(entry: str, first: int, last: int, gone: int) -> Finding:
    """Bytes that are gone, somewhere from the first one on."""
    message = f"{entry}: {gone} of the bytes {first}–{last} are missing"
    return Finding(code="entry_truncated", entry=entry, first=first, last=last, message=message)


def extended(entry: str, first: int) -> Finding:
    """Bytes past the end."""
    message = f"{entry}: bytes were added from {first} on"
    return Finding(code="entry_extended", entry=entry, first=first, message=message)


def missing(entry: str, size: int) -> Finding:
    message = f"{entry}: the entry is missing, with all its {size} bytes"
    return Finding(
        code="entry_missing", entry=entry, first=0, last=max(0, size - 1), message=message
    )


def added(entry: str, size: int) -> Finding:
    message = f"{entry}: the entry was added; the manifest does not know it"
    return Finding(code="entry_added", entry=entry, first=0, last=max(0, size - 1), message=message)
