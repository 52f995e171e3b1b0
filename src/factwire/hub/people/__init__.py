"""People of a Hub: passwords, tokens, and what may be done to an account."""

__all__: list[str] = []
