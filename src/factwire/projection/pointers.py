"""JSON Pointers (RFC 6901): how a change names the place that it is about."""

WIRE_NAMES: dict[str, str] = {}
"""Fields whose wire spelling has been asked for."""


def escaped(key: str) -> str:
    """One key as it stands in a pointer."""
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key


def steps_of(path: str) -> list[str]:
    """The keys of a pointer, from the root on; raises `ValueError` for what is no pointer."""
    if path == "":
        return []
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is no pointer: it must be empty or begin with a slash")
    return [key.replace("~1", "/").replace("~0", "~") for key in path[1:].split("/")]


def wire_name(field: str) -> str:
    """The wire spelling of a field."""
    known = WIRE_NAMES.get(field)
    if known is None:
        head, *rest = field.split("_")
        known = WIRE_NAMES[field] = head + "".join(word.capitalize() for word in rest)
    return known
