"""uvicorn's HTTP protocol with a way to cut a connection.

An event stream whose reader stopped would otherwise keep what was written for it until the reader's
machine gives up. An application finds the knife under `extensions` and `factwire.cut`.
"""

from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

EXTENSION: Final = "factwire.cut"
"""Where a scope holds a function without arguments that ends the connection at once."""


class FactwireHttpProtocol(HttpToolsProtocol):
    """Give it to uvicorn as `http`."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)["extensions"] = {EXTENSION: self.transport.abort}
