"""A small OpenID Connect provider on loopback, with real keys, codes and PKCE; tests change what it
says about itself, what its tokens hold and how they are signed.
"""

import base64
import json
import secrets
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey

CLIENT, SECRET = "the-hub", "s3cret of/the hub"

_KEYS: dict[str, Key] = {
    "RS256": RSAKey.generate_key(2_048, {"kid": "rsa", "use": "sig"}),
    "ES256": ECKey.generate_key("P-256", {"kid": "ec", "use": "sig"}),
    "Ed25519": OKPKey.generate_key("Ed25519", {"kid": "okp", "use": "sig"}),
}


def public_part(key: Key) -> dict[str, Any]:
    return dict(key.as_dict(private=False))


class IdentityServer:
    """What is asked of it and what it answers; `reset` takes back what a test has changed."""

    def __init__(self, address: str, clock: Callable[[], float]) -> None:
        self.issuer = address
        self.clock = clock
        self.reset()

    def reset(self) -> None:
        self.subject = "subject-1"
        self.claims: dict[str, Any] = {}
        self.without: set[str] = set()
        self.header: dict[str, Any] = {}
        self.algorithm = "RS256"
        self.key: Key | None = None
        self.keys = [public_part(each) for each in _KEYS.values()]
        self.metadata: dict[str, Any] = {}
        self.iss: str | None = self.issuer
        self.make_token: Callable[[dict[str, Any], dict[str, Any]], str] = self.sign
        self.token_redirect: str | None = None
        self.checks_pkce = True
        self.codes: dict[str, dict[str, str]] = {}
        self.requests: list[str] = []

    def describe(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize?tenant=1",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }

    def authorize(self, url: str) -> dict[str, str]:
        """What a browser brings back that was sent here and whose user agreed."""
        request = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert request["client_id"] == CLIENT
        assert request["response_type"] == "code"
        assert request["code_challenge_method"] == "S256"
        assert "openid" in request["scope"].split()
        code = secrets.token_urlsafe()
        self.codes[code] = request
        answer = {"code": code, "state": request["state"]}
        return answer if self.iss is None else {**answer, "iss": self.iss}

    def exchange(self, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode().split(":")
        if [unquote(each) for each in pair] != [CLIENT, SECRET]:
            return 401, {"error": "invalid_client"}
        request = self.codes.pop(form["code"], None)
        challenge = base64.urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest())
        proven = request and challenge.rstrip(b"=").decode() == request["code_challenge"]
        if request is None or (self.checks_pkce and not proven):
            return 400, {"error": "invalid_grant", "error_description": "secret detail"}
        if form["redirect_uri"] != request["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        now = int(self.clock())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": self.subject,
            "nonce": request["nonce"],
            "iat": now,
            "exp": now + 300,
            **self.claims,
        }
        kept = {name: value for name, value in claims.items() if name not in self.without}
        token = self.make_token({"alg": self.algorithm, **self.header}, kept)
        return 200, {"id_token": token, "access_token": "x", "token_type": "Bearer"}

    def sign(self, header: dict[str, Any], claims: dict[str, Any]) -> str:
        key = self.key or _KEYS[header["alg"]]
        named = {"kid": key.kid, **header}
        return jwt.encode(named, claims, key, algorithms=[header["alg"]])


class _Handler(BaseHTTPRequestHandler):
    identity: IdentityServer

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.identity.requests.append(path)
        if path == "/.well-known/openid-configuration":
            self._answer(200, self.identity.describe())
        elif path == "/keys":
            self._answer(200, {"keys": self.identity.keys})
        elif path == "/authorize":
            answer = self.identity.authorize(self.path)
            request = parse_qs(urlsplit(self.path).query)
            self.send_response(302)
            self.send_header("location", f"{request['redirect_uri'][0]}?{urlencode(answer)}")
            self.end_headers()
        else:
            self._answer(404, {})

    def do_POST(self) -> None:
        self.identity.requests.append(self.path)
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if self.identity.token_redirect is not None:
            self.send_response(307)
            self.send_header("location", self.identity.token_redirect)
            self.end_headers()
            return
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self._answer(*self.identity.exchange(form, self.headers.get("authorization", "")))

    def _answer(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the library
        del format, args


@contextmanager
def identity_server(clock: Callable[[], float]) -> Generator[IdentityServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    identity = IdentityServer(f"http://127.0.0.1:{server.server_port}", clock)
    server.RequestHandlerClass = type("Handler", (_Handler,), {"identity": identity})
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield identity
    finally:
        server.shutdown()
        server.server_close()
        thread.join(30)
