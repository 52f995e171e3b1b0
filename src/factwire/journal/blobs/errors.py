"""What a blob store refuses, and how it says so.

    JournalError
    └── BlobError
        ├── BlobCorrupt      stored bytes do not match their hash; nothing bad was handed out
        ├── BlobMissing      nothing is stored under the ref
        ├── BlobUnreadable   the disk or the object store did not answer; the content may be fine
        └── BlobUnwritable   nothing was stored; the same put may be tried again

Codes are stable; messages may change.
"""

from collections.abc import Generator
from contextlib import contextmanager

from factwire.journal.errors import JournalError


class BlobError(JournalError):
    code = "blob_error"


class BlobCorrupt(BlobError):
    """Stored bytes are not the bytes that were put; `digest` names the blob."""

    code = "blob_corrupt"

    def __init__(self, digest: str, reason: str) -> None:
        self.digest = digest
        self.reason = reason
        super().__init__(f"blob sha256:{digest} is damaged: {reason}; put its content again")


class BlobMissing(BlobError):
    code = "blob_missing"

    def __init__(self, digest: str) -> None:
        self.digest = digest
        super().__init__(f"there is no blob sha256:{digest} in this store")


class BlobUnreadable(BlobError):
    code = "blob_unreadable"

    def __init__(self, digest: str, reason: str) -> None:
        self.digest = digest
        self.reason = reason
        super().__init__(f"blob sha256:{digest} could not be read: {reason}")


class BlobUnwritable(BlobError):
    """Nothing of the content became visible."""

    code = "blob_unwritable"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the blob could not be stored: {reason}; make room and put it again")


@contextmanager
def writing() -> Generator[None]:
    """Turns a failure of the disk or of an object store into `BlobUnwritable`."""
    try:
        yield
    except OSError as error:
        raise BlobUnwritable(error.strerror or str(error)) from error


@contextmanager
def reading(digest: str) -> Generator[None]:
    """Turns a failure of the disk or of an object store into `BlobMissing` or `BlobUnreadable`."""
    try:
        yield
    except (FileNotFoundError, LookupError):
        raise BlobMissing(digest) from None
    except OSError as error:
        raise BlobUnreadable(digest, error.strerror or str(error)) from error
