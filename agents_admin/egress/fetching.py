"""One whole answer from the network, for tools: bounded in time, size and redirects, secrets only where they belong."""

import asyncio
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from agents_admin.egress.policy import check_url, origin_of

_CONNECT_SECONDS = 10.0
_RATIO_FREE_BYTES = 100_000
# Small, so that the ratio is known before a bomb has filled the size cap.
_SLICE = 1_024
# What may follow a redirect to another origin: nothing that a tool, a person or a model put in.
_HARMLESS_HEADERS = frozenset({"accept", "accept-encoding", "user-agent"})
_BODY_HEADERS = frozenset({"content-length", "content-type", "transfer-encoding"})


class FetchError(Exception):
    """A request that brought no answer. `message` is one plain sentence, free of addresses and secrets.

    `sent`: the service may have got the request, and done what it asks.
    """

    def __init__(self, message: str, *, timed_out: bool = False, sent: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.timed_out = timed_out
        self.sent = sent


@dataclass(frozen=True, slots=True)
class SecretHeaders:
    """Headers that hold a secret, and the only origins (as `parse_origin` writes them) that they may be sent to."""

    headers: Mapping[str, str] = field(repr=False)
    origins: frozenset[str]


@dataclass(frozen=True, slots=True)
class Caps:
    """`bytes` counts the unpacked body; `ratio` is unpacked to received, checked beyond 100,000 bytes."""

    seconds: float = 30.0
    bytes: int = 1_000_000
    redirects: int = 3
    ratio: int = 100


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer at the end of the redirects. `truncated`: the body is its first `Caps.bytes` bytes."""

    status: int
    headers: httpx.Headers
    body: bytes
    truncated: bool
    url: httpx.URL


_NO_SECRET = SecretHeaders({}, frozenset())
_DEFAULT_CAPS = Caps()


async def fetch(
    client: httpx.AsyncClient,
    request: httpx.Request,
    secret: SecretHeaders = _NO_SECRET,
    caps: Caps = _DEFAULT_CAPS,
) -> Fetched:
    """The answer to a request made with `client.build_request`. `client` is the guarded one, so each hop is checked.

    Raises EgressRefused, and FetchError for everything that goes wrong on the way; a status ≥ 400 is an answer.
    """
    request.headers["Accept-Encoding"] = "gzip"
    request.extensions["timeout"] = httpx.Timeout(caps.seconds, connect=_CONNECT_SECONDS).as_dict()
    try:
        async with asyncio.timeout(caps.seconds):
            return await _follow(client, request, secret, caps)
    except httpx.ConnectTimeout:
        raise FetchError("The service can't be reached: it does not react.", timed_out=True, sent=False) from None
    except (TimeoutError, httpx.TimeoutException):
        raise FetchError(f"There was no complete answer within {caps.seconds:g} seconds.", timed_out=True) from None
    except httpx.ConnectError:
        raise FetchError("The service can't be reached: no connection could be made.", sent=False) from None
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, zlib.error):
        raise FetchError("The service broke off the connection or gave an answer that is not valid HTTP.") from None


async def _follow(client: httpx.AsyncClient, request: httpx.Request, secret: SecretHeaders, caps: Caps) -> Fetched:
    for _ in range(caps.redirects + 1):
        response = await client.send(_with_secret(request, secret), stream=True)
        try:
            if response.next_request is None:
                body, truncated = await _read(response, caps)
                return Fetched(response.status_code, response.headers, body, truncated, response.url)
            request = _next(request, response.next_request)
        finally:
            await response.aclose()
    raise FetchError(f"The service redirects more than {caps.redirects} times.")


def _with_secret(request: httpx.Request, secret: SecretHeaders) -> httpx.Request:
    """A copy to send, so that the secret is never part of the request that the next hop is made from."""
    if origin_of(check_url(request.url)) not in secret.origins:
        return request
    headers = request.headers.copy()
    headers.update(secret.headers)
    return httpx.Request(
        request.method, request.url, headers=headers, stream=request.stream, extensions=request.extensions
    )


def _next(request: httpx.Request, redirected: httpx.Request) -> httpx.Request:
    """The next hop: method, URL and body as httpx has them, headers from the request that never held the secret."""
    check_url(redirected.url)
    same_origin = origin_of(redirected.url) == origin_of(request.url)
    bodyless = redirected.method in ("GET", "HEAD")
    if not (same_origin or bodyless):
        raise FetchError("The service redirects the data to another site, which is not followed.")
    headers = {
        name: value
        for name, value in request.headers.items()
        if name in _HARMLESS_HEADERS or (same_origin and name != "host" and not (bodyless and name in _BODY_HEADERS))
    }
    headers["Host"] = redirected.url.netloc.decode("ascii")
    return httpx.Request(
        redirected.method, redirected.url, headers=headers, stream=redirected.stream, extensions=redirected.extensions
    )


async def _read(response: httpx.Response, caps: Caps) -> tuple[bytes, bool]:
    """The unpacked body, at most `caps.bytes` of it and never more in memory, and whether it was cut there."""
    unpacker = _unpacker(response.headers.get("Content-Encoding", ""))
    body = bytearray()
    received = 0
    async for piece in response.aiter_raw(_SLICE):
        received += len(piece)
        body += unpacker.decompress(piece, caps.bytes + 1 - len(body)) if unpacker else piece
        if len(body) > max(_RATIO_FREE_BYTES, caps.ratio * received):
            raise FetchError("The answer unpacks to far more than was sent, which is refused.")
        if max(len(body), received) > caps.bytes:
            return bytes(body[: caps.bytes]), True
    if unpacker and received and not unpacker.eof:
        raise FetchError("The answer was cut off in the middle.")
    return bytes(body), False


def _unpacker(encoding: str) -> "zlib._Decompress | None":
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip" | "deflate":
            return zlib.decompressobj(zlib.MAX_WBITS | 32)
        case _:
            raise FetchError("The answer is compressed in a way that was not asked for.")
