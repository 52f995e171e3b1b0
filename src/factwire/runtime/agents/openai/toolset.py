"""The toolbox as the library sees it: what may be called, and every call under the policy.

The library checks nothing about arguments and decides nothing; whatever is wrong with a call, the
toolbox says so, in the facts and to the model.
"""

from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from factwire.runtime.agents.openai.answers import heard
from factwire.runtime.agents.openai.limits import BAD_CALLS
from factwire.runtime.agents.openai.telling import Calls
from factwire.runtime.agents.openai.tools import TOOL_TEXTS
from factwire.runtime.toolbox import Toolbox

_ANYTHING = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))


class ToolboxTools(AbstractToolset[None]):
    """The tools of one turn."""

    def __init__(self, toolbox: Toolbox, calls: Calls) -> None:
        self._toolbox = toolbox
        self._calls = calls
        self.names: frozenset[str] = frozenset(TOOL_TEXTS)

    @property
    def id(self) -> str:
        return "factwire"

    async def get_tools(self, ctx: RunContext[None]) -> dict[str, ToolsetTool[None]]:
        """The toolbox, and what its servers offer now; it is asked for before each request."""
        del ctx
        own = {
            name: self._tool(name, text.description, text.schema, alone=text.alone)
            for name, text in TOOL_TEXTS.items()
        }
        # Nobody knows what a server's tool touches, so none runs beside another.
        theirs = {
            tool.name: self._tool(tool.name, tool.description, tool.schema, alone=True)
            for tool in await self._toolbox.offered()
        }
        self.names = frozenset({*own, *theirs})
        return {**own, **theirs}

    def _tool(
        self, name: str, description: str, schema: dict[str, Any], *, alone: bool
    ) -> ToolsetTool[None]:
        definition = ToolDefinition(
            name=name,
            description=description,
            parameters_json_schema=schema,
            sequential=alone,
            strict=False,
        )
        return ToolsetTool(
            toolset=self, tool_def=definition, max_retries=BAD_CALLS, args_validator=_ANYTHING
        )

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[None], tool: ToolsetTool[None]
    ) -> str:
        del tool
        if self._toolbox.is_stopping:
            # Not to be begun any more; whoever closes the calls that were not made says so.
            return "Cancelled."
        call_id = self._calls.take(ctx.tool_call_id or "")
        return heard(await self._toolbox.call(name, tool_args, call_id=call_id))
