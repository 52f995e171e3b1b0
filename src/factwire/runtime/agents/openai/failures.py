"""How a turn of an `openai` agent can fail: categories that never change, each with what helps."""

from typing import Final, NamedTuple


class Failing(NamedTuple):
    meaning: str
    hint: str


FAILINGS: Final = {
    "unauthorized": Failing(
        "the endpoint did not accept the key",
        "Check the key, and that api_key_env names the variable that holds it.",
    ),
    "key_missing": Failing(
        "the variable that shall hold the key is empty",
        "Put the key into the variable, or name another one in api_key_env.",
    ),
    "model_not_found": Failing(
        "the endpoint does not serve this model, or is not at this address",
        "Check the name of the model and the base URL.",
    ),
    "rate_limited": Failing(
        "the endpoint had too many requests, also after the retries",
        "Wait a while, then retry the turn.",
    ),
    "quota_exceeded": Failing(
        "the account behind the key has nothing left",
        "Look at the account's plan and limits; waiting does not help.",
    ),
    "endpoint_unreachable": Failing(
        "nothing answered at the endpoint's address",
        "Check the base URL, and that the server runs.",
    ),
    "endpoint_error": Failing(
        "the endpoint failed, also after the retries",
        "Retry the turn later; the fault is the endpoint's.",
    ),
    "endpoint_silent": Failing(
        "the endpoint said nothing for too long",
        "Retry the turn, or raise silence_seconds.",
    ),
    "invalid_response": Failing(
        "the endpoint or its model answered what nobody can use",
        "Check that the base URL is that of an OpenAI-compatible API, or take another model.",
    ),
    "stream_interrupted": Failing(
        "the answer broke off",
        "Retry the turn; what it had done until then is kept.",
    ),
    "context_too_long": Failing(
        "the conversation is longer than the model can read",
        "Start a new thread, lower history_characters, or take a model that reads more.",
    ),
    "request_rejected": Failing(
        "the endpoint did not accept the request",
        "Look at the message; a setting or an attachment may not suit this model.",
    ),
    "content_filtered": Failing(
        "the endpoint's filter kept the answer back",
        "Ask in another way.",
    ),
    "step_limit_reached": Failing(
        "the model did not come to an end within the steps that it has",
        "Ask it to go on, or raise steps.",
    ),
    "unsupported_input": Failing(
        "an attachment cannot be given to the model",
        "Attach text or an image (PNG, JPEG, GIF, WebP), or put the file into the workspace.",
    ),
    "invalid_options": Failing(
        "the options of the turn are not of the form",
        "Mend the options of the turn.",
    ),
}

MODEL_FAILURES: Final = {category: failing.meaning for category, failing in FAILINGS.items()}
"""Category → when."""
