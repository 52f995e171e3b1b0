"""A program that prints JSON lines of its own, and does what its prompt says.

It is run by itself, and knows nothing of Factwire. The last word of a prompt names what it does;
its first argument says how the prompt comes.
"""

import json
import os
import sys
import time
from typing import Any


def say(event: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def hear() -> Any:
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def answers(given: str) -> None:
    say("say", text=f"You said: {given}")
    say("bye", why="done")


def repeats(given: str) -> None:
    names = sorted(name for name in os.environ if "TEST_" in name)
    say("say", text=json.dumps({"given": given, "argv": sys.argv[1:], "names": names}))
    say("bye", why="done")


def ends(given: str) -> None:
    """Without a word about it."""
    say("say", text=given)


def dies(given: str) -> None:
    say("say", text="Half an ans")
    sys.exit(f"out of memory after {given}")


def gives_up(given: str) -> None:
    del given
    say("bye", why="no_idea", text="It is too hard")


def babbles(given: str) -> None:
    sys.stdout.write("Loading...\n")
    say("unheard of")
    answers(given)


def hangs(given: str) -> None:
    say("say", text=given)
    time.sleep(600)


def stops(given: str) -> None:
    """It goes on until it is told to stop."""
    say("say", text=given)
    say("said", text=json.dumps(hear()))
    say("bye", why="stopped")
    time.sleep(600)


def asks(given: str) -> None:
    del given
    say("run", call="call-1", tool="rm")
    say("may-i", question=7, call="call-1", text="Remove it?", tag="blue")
    heard = hear() if sys.argv[1] == "lines" else None
    if heard and heard["yes"]:
        say("ran", call="call-1")
    say("say", text=json.dumps(heard))
    say("bye", why="done")


def prompt() -> str:
    if sys.argv[1] == "argument":
        return sys.argv[-1]
    return hear()["text"] if sys.argv[1] == "lines" else sys.stdin.read()


if "deaf" in sys.argv:
    os.close(0)
    sys.exit("error: no licence")
words = prompt()
say("hello", session="s-1")
works = {
    each.__name__: each
    for each in (answers, asks, babbles, dies, ends, gives_up, hangs, repeats, stops)
}
works[words.split()[-1]](words)
