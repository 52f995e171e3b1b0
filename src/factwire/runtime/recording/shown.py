"""What a person is shown, and the hash that binds an answer to exactly that."""

from hashlib import sha256

import msgspec

from factwire.runtime.policy import visible


def shown_hash(prompt: str, args: object) -> tuple[str, str]:
    """The text to show, and its hash. Keys are sorted, so that the same arguments look the same; a
    text is shown as its lines, with nothing in them that could not be seen.
    """
    if args is None:
        shown = prompt
    elif isinstance(args, str):
        shown = "\n".join([prompt, *map(visible, args.split("\n"))])
    else:
        text = msgspec.json.format(msgspec.json.encode(args, order="sorted"), indent=2)
        shown = f"{prompt}\n{text.decode()}"
    return shown, f"sha256:{sha256(shown.encode()).hexdigest()}"
