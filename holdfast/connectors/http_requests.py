"""The inputs of a task become a request: checked, encoded, with the secrets put in."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from holdfast.connectors.http_failures import make_refusal
from holdfast.connectors.urls import Url, UrlRefused, parse_url
from holdfast.version import __version__

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
FRAMING: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers by which one request could pass for two, or for one to another host: they are made here, never given."""
PUBLIC: Final = frozenset({"accept", "accept-encoding", "accept-language", "content-type", "user-agent"})
"""Headers that another origin may see after a redirect. All others may be credentials."""
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,16384}")
_SECRET: Final = re.compile(r"\{\{\s*secrets\.([\w.-]+)\s*\}\}")
_FORM: Final = "application/x-www-form-urlencoded"
_JSON: Final = "application/json"
_OWN_AUTHENTICATION: Final = ("noAuth", "basic", "bearer", "apiKey")

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request that can be sent as it is."""

    method: str
    url: Url
    headers: Pairs = ()
    body: bytes | None = None

    def encode_head(self) -> bytes:
        """The first line and the headers. There is one request per connection, and no compression is asked for."""
        names = {name.lower() for name, _ in self.headers}
        lines = [f"{self.method} {self.url.target} HTTP/1.1", f"Host: {self.url.origin.authority}", "Connection: close"]
        if "accept-encoding" not in names:
            lines.append("Accept-Encoding: identity")
        if "user-agent" not in names:
            lines.append(f"User-Agent: holdfast/{__version__}")
        lines.extend(f"{name}: {value}" for name, value in self.headers)
        if self.body is not None or self.method not in SAFE_METHODS:
            lines.append(f"Content-Length: {len(self.body or b'')}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def redirect(self, status: int, url: Url) -> HttpRequest:
        """The request that follows a redirect: as browsers do it, and without what another origin must not see."""
        request = replace(self, url=url)
        if (status == 303 and self.method != "HEAD") or (status in (301, 302) and self.method == "POST"):
            kept = tuple(pair for pair in request.headers if pair[0].lower() != "content-type")
            request = replace(request, method="GET", body=None, headers=kept)
        if url.origin != self.url.origin:
            kept = tuple(pair for pair in request.headers if pair[0].lower() in PUBLIC)
            request = replace(request, headers=kept)
        return request


@dataclass(frozen=True, slots=True)
class HttpInputs:
    """What a task or a workflow gave, under Camunda's names for it."""

    url: Any
    method: Any = "GET"
    headers: Any = None
    query_parameters: Any = None
    body: Any = None
    authentication: Any = None


def make_request(inputs: HttpInputs, secrets: Mapping[str, str]) -> HttpRequest:
    """The request that the inputs ask for. Raises CallFailed, which is final, for inputs that make none."""
    method = inputs.method.strip().upper() if isinstance(inputs.method, str) else ""
    if method not in METHODS:
        raise make_refusal(
            f"method to be one of {', '.join(sorted(METHODS))}", f"it is {inputs.method!r:.100}", "Choose one of them."
        )
    credentials, extra_query = _authenticate(inputs.authentication, secrets)
    url = _make_url(inputs.url, inputs.query_parameters, extra_query)
    headers = _make_headers(inputs.headers, secrets)
    given = {name.lower() for name, _ in headers}
    headers += [pair for pair in credentials if pair[0].lower() not in given]
    body = None
    if inputs.body is not None:
        content_type = next((value for name, value in headers if name.lower() == "content-type"), None)
        if content_type is None:
            headers.append(("Content-Type", _JSON))
        body = _encode_body(inputs.body, content_type or _JSON)
    if "accept" not in given:
        headers.append(("Accept", "application/json, */*;q=0.5"))
    return HttpRequest(method, url, tuple(headers), body)


def add_header(request: HttpRequest, name: str, value: str) -> HttpRequest:
    """The request with one more header, unless it has one of that name."""
    if any(one.lower() == name.lower() for one, _ in request.headers):
        return request
    return replace(request, headers=(*request.headers, (name, check_header(name, value))))


def _make_url(given: Any, parameters: Any, extra: Mapping[str, str]) -> Url:
    if not isinstance(given, str) or not given:
        raise make_refusal("url to be a text", f"it is {given!r:.100}", "Map a URL to the input `url`.")
    query = [*_list_pairs(parameters, "queryParameters"), *extra.items()]
    text = given.strip(" ")
    if query:
        text, hash_sign, fragment = text.partition("#")
        encoded = urlencode(query, quote_via=quote, errors="replace")
        text = f"{text}{'&' if '?' in text else '?'}{encoded}{hash_sign}{fragment}"
    try:
        return parse_url(text)
    except UrlRefused as error:
        raise make_refusal(f"url to be one that can be called ({_shorten(given)})", str(error), "Correct it.") from None


def _shorten(url: str) -> str:
    """A URL for a message, which is stored: without its query, and without users and passwords."""
    return repr(url.partition("?")[0].rpartition("@")[2][:200])


def _make_headers(given: Any, secrets: Mapping[str, str]) -> list[tuple[str, str]]:
    found = [
        (name, check_header(name, put_in_secrets(value, secrets, f"header '{name}'")))
        for name, value in _list_pairs(given, "headers")
    ]
    for name, _ in found:
        if name.lower() in FRAMING:
            raise make_refusal("headers to be those of the call", f"'{name}' is made by Holdfast", "Leave it out.")
    return found


def check_header(name: str, value: str) -> str:
    """The value of a header. Raises CallFailed if the name or the value cannot stand in one line."""
    if not _TOKEN.fullmatch(name):
        raise make_refusal("headers to have names that HTTP permits", f"{name!r:.100} is none", "Correct it.")
    value = value.strip(" \t")
    if not _VALUE.fullmatch(value):
        raise make_refusal(
            f"header '{name}' to have a text of one line, in ISO 8859-1 and not too long",
            "it has not",
            "Take line breaks and other characters out of it.",
        )
    return value


def _list_pairs(given: Any, what: str) -> list[tuple[str, str]]:
    """Names and values as texts; a null is left out, a list gives one pair for each item."""
    if given is None or given == "":
        return []
    if not isinstance(given, Mapping):
        raise make_refusal(f"{what} to be a context", f"it is a {type(given).__name__}", "Write for instance ={a: 1}.")
    pairs: list[tuple[str, str]] = []
    for name, value in given.items():
        items = value if isinstance(value, list) else [value]
        pairs.extend((name, _write(one, f"'{name}' of {what}")) for one in items if one is not None)
    return pairs


def _write(value: Any, what: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return msgspec.json.encode(value).decode()
    raise make_refusal(f"{what} to be a text, a number or a boolean", f"it is a {type(value).__name__}", "Map one to it.")


def _encode_body(body: Any, content_type: str) -> bytes:
    """A text goes as it is, whatever its type. Contexts become JSON, or a form if the header says so."""
    if isinstance(body, str):
        return body.encode("utf-8", "replace")
    if content_type.partition(";")[0].strip().lower() == _FORM:
        return urlencode(_list_pairs(body, "body")).encode()
    return msgspec.json.encode(body)


# --- authentication and secrets ---


def _authenticate(given: Any, secrets: Mapping[str, str]) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """The headers and the query parameters that `authentication` stands for."""
    if given is None:
        return [], {}
    if not isinstance(given, Mapping):
        raise make_refusal("authentication to be a context", f"it is a {type(given).__name__}", "Map ={type: …} to it.")
    match given.get("type", "noAuth"):
        case "noAuth":
            return [], {}
        case "basic":
            user = _find(given, "username", secrets)
            if ":" in user:
                raise make_refusal("authentication.username to have no colon", "it has one", "Use another scheme.")
            text = f"{user}:{_find(given, 'password', secrets, is_required=False)}"
            return [("Authorization", f"Basic {b64encode(text.encode()).decode()}")], {}
        case "bearer":
            token = _find(given, "token", secrets)
            return [("Authorization", check_header("Authorization", f"Bearer {token}"))], {}
        case "apiKey":
            name, value = _find(given, "name", secrets), _find(given, "value", secrets)
            if given.get("apiKeyLocation") == "query":
                return [], {name: value}
            return _make_headers({name: value}, {}), {}
        case other:
            raise make_refusal(
                f"authentication.type to be one of {', '.join(_OWN_AUTHENTICATION)}",
                f"it is {other!r:.100}",
                "Get a token in an activity of your own, and pass it as bearer.",
            )


def _find(given: Mapping[str, Any], name: str, secrets: Mapping[str, str], *, is_required: bool = True) -> str:
    value = given.get(name)
    if value is None and not is_required:
        return ""
    if not isinstance(value, str) or (is_required and not value):
        kind = "nothing" if value is None else "an empty text" if value == "" else f"a {type(value).__name__}"
        raise make_refusal(f"authentication.{name} to be a text", f"it is {kind}", "Map one to it.")
    return put_in_secrets(value, secrets, f"authentication.{name}")


def put_in_secrets(text: str, secrets: Mapping[str, str], what: str) -> str:
    """A text with the values of `{{secrets.NAME}}`. Raises CallFailed for names that the operator did not give."""

    def find(match: re.Match[str]) -> str:
        if match[1] not in secrets:
            raise make_refusal(
                f"{what} to name secrets that the activity was given",
                f"it names '{match[1]}'",
                "Pass it in http_activity(…, secrets={…}).",
            )
        return secrets[match[1]]

    return _SECRET.sub(find, text)
