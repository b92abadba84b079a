"""The one guarded way out to the network: look up once, check every address, connect to the one that was checked."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpcore
import httpx

from agents_admin.egress.addresses import Address, as_address
from agents_admin.egress.policy import EgressRefused, Policy, check_url, host_name

type Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, as text. Raises OSError when there are none."""

_LOOKUP_SECONDS = 5.0
_CONNECT_SECONDS = 10.0
_MAX_TRIED = 4


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    """The system's resolver, in a thread: DNS never blocks the loop."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def client(policy: Policy, resolve: Resolve = resolve_by_system) -> httpx.AsyncClient:
    """A new client whose every connection is checked by `policy`. Make one per process and event loop, share it between
    all runs (its TLS context costs 30 ms, its pool keeps connections) and close it with the loop.

    It knows no proxies, no environment and no cookies, speaks HTTP/1.1 and follows no redirect: `fetch` does that. It
    raises EgressRefused beside httpx's own errors. A kept connection keeps the address that was checked.
    """
    return httpx.AsyncClient(
        transport=_Guard(policy, resolve),
        timeout=httpx.Timeout(30.0, connect=_CONNECT_SECONDS, pool=_CONNECT_SECONDS),
        headers={"User-Agent": "Roster"},
        # Shared by everybody: one person's answer must not set a cookie for another's request.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        follow_redirects=False,
        trust_env=False,
    )


class _Guard(httpx.AsyncBaseTransport):
    """Checks the URL of each request; its two pools check each connection. Answers pass through untouched."""

    def __init__(self, policy: Policy, resolve: Resolve) -> None:
        self._pools = {
            "https": _Pool(_PinnedBackend(policy, resolve, tls=True), httpx.create_ssl_context(trust_env=False)),
            "http": _Pool(_PinnedBackend(policy, resolve, tls=False)),
        }

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._pools[check_url(request.url).scheme].handle_async_request(request)

    async def aclose(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()


class _Pool(httpx.AsyncHTTPTransport):
    """httpx's transport over a pool with our backend, which its own constructor has no argument for."""

    def __init__(self, backend: httpcore.AsyncNetworkBackend, tls: ssl.SSLContext | None = None) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=None,
            max_keepalive_connections=100,
            keepalive_expiry=30.0,
            network_backend=backend,
        )


class _PinnedBackend(httpcore.AsyncNetworkBackend):
    """Connects to the address that was checked; the URL's host stays what Host and SNI say."""

    def __init__(self, policy: Policy, resolve: Resolve, *, tls: bool) -> None:
        self._policy = policy
        self._resolve = resolve
        self._tls = tls
        self._sockets = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await self._look_up(host, port)
        self._policy.check(host, port, addresses, tls=self._tls)
        tried = addresses[:_MAX_TRIED]
        share = (timeout or _CONNECT_SECONDS) / len(tried)
        for address in tried[:-1]:
            try:
                return await self._sockets.connect_tcp(str(address), port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._sockets.connect_tcp(str(tried[-1]), port, share, local_address, socket_options)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise EgressRefused("Sockets of this machine can't be called.")

    async def sleep(self, seconds: float) -> None:
        await self._sockets.sleep(seconds)

    async def _look_up(self, host: str, port: int) -> list[Address]:
        name = host_name(host)
        if address := as_address(name):
            return [address]
        try:
            async with asyncio.timeout(_LOOKUP_SECONDS):
                found = await self._resolve(name, port)
        except TimeoutError:
            raise httpcore.ConnectTimeout(f"Looking up “{host}” took too long.") from None
        except (OSError, UnicodeError):
            raise httpcore.ConnectError(f"“{host}” can't be found. Check the spelling of the address.") from None
        addresses = [as_address(text) for text in found]
        if None in addresses:
            # An address with a zone id belongs to one of this machine's links.
            raise EgressRefused(f"“{host}” points to an address that is only valid on this machine.")
        return [address for address in addresses if address is not None]
