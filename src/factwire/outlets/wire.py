"""`Wire`: what an outside protocol can be told.

One method for each thing that happens in a turn. A wire knows its protocol and nothing of facts'
lifecycles; a `Narrator` calls it in an order that makes sense, and closes nothing that is not open.
Each method gets the fact that it is told of, for its ids and its time.
"""

from typing import Any, Protocol

from factwire.facts import Fact
from factwire.outlets.calls import Answer, Call, Question
from factwire.outlets.notes import Note
from factwire.outlets.spoken import Spoken


class Wire(Protocol):
    """One client's stream. `speaker` is a subagent, or None for the agent that answers."""

    def begin(self, fact: Fact, turn_id: str, prompt: str | None, *, is_aside: bool) -> None:
        """A turn begins, or something beside turns; nothing else is told before."""
        ...

    def complete(self, fact: Fact | None, usage: dict[str, Any]) -> None:
        """The turn is over; without a fact, what stood beside turns is."""
        ...

    def fail(self, fact: Fact | None, category: str, message: str, usage: dict[str, Any]) -> None:
        """The turn has failed, or was cut off."""
        ...

    def cancel(self, fact: Fact, reason: str | None, usage: dict[str, Any]) -> None:
        """The turn was stopped."""
        ...

    def wait(self) -> None:
        """The stream ends while somebody is asked."""
        ...

    def requested(self, fact: Fact) -> None:
        """A model is asked."""
        ...

    def step(self, fact: Fact, name: str | None) -> None:
        """What follows belongs to this step, or to none."""
        ...

    def text(self, fact: Fact, spoken: Spoken, delta: str) -> None:
        """The next piece of a text."""
        ...

    def text_end(self, fact: Fact, spoken: Spoken) -> None:
        """A text is whole."""
        ...

    def names_of(self, message_id: str) -> list[str]:
        """What the texts of a message were called on the wire."""
        ...

    def withdraw(self, fact: Fact, names: list[str]) -> None:
        """Texts are taken back."""
        ...

    def thinking(self, fact: Fact, thought_id: str, summary: str | None) -> None:
        """A model reasons; `summary` is what it gives to be read."""
        ...

    def thought(self, fact: Fact, thought_id: str) -> None:
        """It has reasoned."""
        ...

    def tool(self, fact: Fact, call: Call) -> None:
        """A tool is called."""
        ...

    def tool_args_piece(self, fact: Fact, call: Call, delta: str) -> None:
        """The next piece of its arguments."""
        ...

    def tool_args(self, fact: Fact, call: Call) -> None:
        """Its arguments are `call.args`, for the first time or other than before."""
        ...

    def tool_news(self, fact: Fact, call: Call) -> None:
        """How it gets on."""
        ...

    def tool_result(self, fact: Fact, call: Call, output: Any) -> None:
        """It has given a result."""
        ...

    def tool_failed(self, fact: Fact, call: Call, category: str, message: str) -> None:
        """It has failed."""
        ...

    def ask(self, fact: Fact, question: Question, call: Call | None) -> None:
        """A person is asked; `call` is the call that it is about."""
        ...

    def answered(self, fact: Fact, question: Question, answer: Answer) -> None:
        """The question is closed."""
        ...

    def subagent(self, fact: Fact, subagent_id: str) -> None:
        """Another agent begins to work."""
        ...

    def subagent_end(self, fact: Fact, subagent_id: str) -> None:
        """It is done, one way or the other."""
        ...

    def state(self, fact: Fact) -> None:
        """The application's own state has changed."""
        ...

    def note(self, fact: Fact, note: Note) -> None:
        """Anything else that a client can show."""
        ...
