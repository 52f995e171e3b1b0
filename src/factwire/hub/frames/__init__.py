"""The frames of a Hub: what they say, and the log from which people read them."""

__all__: list[str] = []
