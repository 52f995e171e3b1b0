"""Operations: what a request does on this machine, without HTTP; one module a kind of thing."""

__all__: list[str] = []
