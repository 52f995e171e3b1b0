"""The page behind an invitation's link: a form for a name and a password.

The secret is in the fragment of the link, which a browser sends to nobody; the page puts it into
the request that creates the account, and out of the address bar at once. The page is whole in
itself: its policy allows no script and no style but its own, by hash.
"""

import base64
from hashlib import sha256
from typing import Final

from factwire.serving.asgi import Message, Receive, Scope, Send

PATH: Final = "/join"

_STYLE: Final = """
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
main{max-width:24rem;margin:12vh auto;padding:0 1rem}
label{display:block;margin-top:1rem}
input,button{font:inherit;width:100%;box-sizing:border-box;padding:.5rem;margin-top:.25rem}
button{margin-top:1.5rem}
[role=status]{margin-top:1rem;min-height:1.5em}
"""

_SCRIPT: Final = """
const token = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
const form = document.querySelector("form"), status = document.querySelector("[role=status]");
if (!token) {
  form.hidden = true;
  status.textContent = "This link has no invitation in it. Open the complete link.";
}
const key = crypto.randomUUID ? crypto.randomUUID() : String(Math.random());
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  status.textContent = "Creating the account …";
  const fields = new FormData(form);
  try {
    const answer = await fetch("/v1/auth/register", {
      method: "POST",
      headers: {"content-type": "application/json", "idempotency-key": key},
      body: JSON.stringify({token, name: fields.get("name"), password: fields.get("password")}),
    });
    const result = await answer.json();
    if (answer.ok) {
      form.hidden = true;
      status.textContent =
        `The account ${result.person.name} was created. You can sign in with it now.`;
      return;
    }
    status.textContent = `${result.detail} (${result.code})`;
  } catch {
    status.textContent = "The Hub does not answer. Try again.";
  }
  button.disabled = false;
});
"""

_PAGE: Final = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Join this Factwire Hub</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>Join this Hub</h1>
<form>
<label>Name
<input name="name" autocomplete="username" maxlength="64" required autofocus></label>
<label>Password, at least 12 characters
<input name="password" type="password" autocomplete="new-password" minlength="12" required></label>
<button>Create account</button>
</form>
<p role="status"></p>
</main>
<script>{_SCRIPT}</script>
</body>
</html>
"""


def _hash_source(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


_POLICY: Final = (
    "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    f"frame-ancestors 'none'; script-src {_hash_source(_SCRIPT)}; "
    f"style-src {_hash_source(_STYLE)}"
)


def owns_page(scope: Scope) -> bool:
    """Whether somebody asks for the page."""
    return scope["type"] == "http" and scope["path"] == PATH and scope["method"] in ("GET", "HEAD")


async def serve_page(scope: Scope, _: Receive, send: Send) -> None:
    """Answer with the page."""
    body = _PAGE.encode()
    start: Message = {
        "type": "http.response.start",
        "status": 200,
        "headers": [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            (b"content-security-policy", _POLICY.encode()),
        ],
    }
    await send(start)
    shown = b"" if scope["method"] == "HEAD" else body
    await send({"type": "http.response.body", "body": shown})
