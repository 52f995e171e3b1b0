"""Text out of bytes: a character that is cut in two waits for its other half.

Invalid bytes become U+FFFD, each as a decoder of the whole would do it, so that the text of a
stream does not depend on how it was cut. All text that leaves here is sound UTF-8.
"""

import codecs
from typing import Final

_CONTINUATION_MASK: Final = 0xC0
_CONTINUATION: Final = 0x80


class Utf8Text:
    """Feed it the bytes of one stream; what it holds back is less than one character."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        return self._decoder.decode(data)

    def end(self) -> str:
        """What is left of a character that never became whole."""
        return self._decoder.decode(b"", final=True)


def whole_characters(data: bytes, limit: int) -> int:
    """The length of the longest beginning of `data`, at most `limit`, that cuts no character."""
    if limit >= len(data):
        return len(data)
    end = max(limit, 0)
    while end > 0 and data[end] & _CONTINUATION_MASK == _CONTINUATION:
        end -= 1
    return end
