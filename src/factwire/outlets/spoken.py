"""`Spoken`: how much of a text was streamed, without keeping the text.

A whole text that comes after its pieces either goes on where they ended, and the rest of it is one
more piece, or says something else, and then what was streamed has to be taken back. A digest of
what was streamed tells the two apart in constant memory.
"""

from hashlib import blake2b


class Spoken:
    """What was streamed of one text so far. `message_id` is the message that it belongs to, and
    `names` are what it was called on the wire.
    """

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.names: list[str] = []
        self._length = 0
        self._digest = blake2b(digest_size=16)

    def add(self, piece: str) -> None:
        self._length += len(piece)
        self._digest.update(piece.encode("utf-8", "surrogatepass"))

    def rest_of(self, whole: str) -> str | None:
        """What of a whole text was not streamed yet; None if something else was."""
        begun = blake2b(whole[: self._length].encode("utf-8", "surrogatepass"), digest_size=16)
        if len(whole) < self._length or begun.digest() != self._digest.digest():
            return None
        return whole[self._length :]
