"""Type mismatches as issues, with the exact path at which they stand."""

import msgspec

from factwire.facts.issues import Issue


def mismatches(value: object, expected: object, path: str) -> list[Issue]:
    """What keeps `value`, which stands at `path`, from being of the `expected` type."""
    try:
        msgspec.convert(value, expected)
    except msgspec.ValidationError as error:
        reason, _, inner = str(error).partition(" - at `$")
        return [Issue("schema_mismatch", path + inner.rstrip("`"), reason.replace(" | null", ""))]
    return []
