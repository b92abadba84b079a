"""The one guarded way out to the network: look up once, check every address, connect to the one that was checked."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from io import BytesIO

import aiohttp
import httpx
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from agents_admin.egress.addresses import Address, as_address
from agents_admin.egress.policy import EgressRefused, Policy, check_url, host_name

type Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, as text. Raises OSError when there are none."""

_LOOKUP_SECONDS = 5.0
_CONNECT_SECONDS = 10.0
_KEPT_SECONDS = 30.0
_MAX_TRIED = 4
_WRITTEN_AT_ONCE = 2**20
"""Bytes; aiohttp warns of a longer body that is not a stream."""


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    """The system's resolver, in a thread: DNS never blocks the loop."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def client(policy: Policy, resolve: Resolve = resolve_by_system) -> httpx.AsyncClient:
    """A new client whose every connection is checked by `policy`. Make one per process and event loop, share it between
    all runs (its TLS context costs 30 ms, its pool keeps connections) and close it with the loop.

    It knows no proxies, no environment and no cookies, speaks HTTP/1.1 and follows no redirect: `fetch` does that. It
    raises EgressRefused beside httpx's own errors. A kept connection keeps the address that was checked. Closing an
    answer never waits, so that a cancelled run can't leave its connection open.
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
    """Checks each request; its resolvers check each connection. Answers pass through untouched."""

    def __init__(self, policy: Policy, resolve: Resolve) -> None:
        self._resolvers = {
            "https": _CheckedResolver(policy, resolve, tls=True),
            "http": _CheckedResolver(policy, resolve, tls=False),
        }
        self._sessions: dict[str, aiohttp.ClientSession] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        with _errors_of_httpx():
            url = URL(str(check_url(request.url)), encoded=True)
        host, port = url.raw_host or "", url.port or 0
        if as_address(host_name(host)):  # such a host is connected to without being looked up
            await self._resolvers[url.scheme].look_up(host, port)
        seconds = request.extensions.get("timeout", {})
        timeout = aiohttp.ClientTimeout(sock_connect=seconds.get("connect"), sock_read=seconds.get("read"))
        body = await request.aread()
        with _errors_of_httpx():
            answer = await self._session(url.scheme).request(
                request.method,
                url,
                headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw],
                data=BytesIO(body) if len(body) > _WRITTEN_AT_ONCE else body or None,
                allow_redirects=False,
                timeout=timeout,
            )
        return httpx.Response(answer.status, headers=answer.raw_headers, stream=_Body(answer), request=request)

    def _session(self, scheme: str) -> aiohttp.ClientSession:
        if scheme not in self._sessions:
            connector = aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=_KEPT_SECONDS,
                resolver=self._resolvers[scheme],
                use_dns_cache=False,
                ssl=httpx.create_ssl_context(trust_env=False) if scheme == "https" else False,
            )
            session = self._sessions[scheme] = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
            )
            # It would send a GET again that broke off, and a tool's GET may act. There is no argument for it.
            session._retry_connection = False
        return self._sessions[scheme]

    async def aclose(self) -> None:
        for session in self._sessions.values():
            await session.close()


class _Body(httpx.AsyncByteStream):
    """What the server sends, as it comes, still packed."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors_of_httpx():
            async for data in self._answer.content.iter_any():
                yield data

    async def aclose(self) -> None:
        self._answer.close()


@contextmanager
def _errors_of_httpx() -> Iterator[None]:
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx.ConnectTimeout(str(error)) from error
    except (aiohttp.ClientConnectorError, aiohttp.ClientConnectorDNSError) as error:
        raise httpx.ConnectError(str(error)) from error
    except aiohttp.SocketTimeoutError as error:
        raise httpx.ReadTimeout(str(error)) from error
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
        raise httpx.UnsupportedProtocol(str(error)) from error
    except (aiohttp.ClientConnectionError, OSError) as error:
        raise httpx.ReadError(str(error)) from error
    except ValueError as error:  # a header or an address that can't be written down
        raise httpx.LocalProtocolError(str(error)) from error
    except aiohttp.ClientError as error:
        raise httpx.RemoteProtocolError(str(error)) from error


class _CheckedResolver(AbstractResolver):
    """Gives only addresses that were checked; the URL's host stays what Host and SNI say."""

    def __init__(self, policy: Policy, resolve: Resolve, *, tls: bool) -> None:
        self._policy = policy
        self._resolve = resolve
        self._tls = tls

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in (await self.look_up(host, port))[:_MAX_TRIED]
        ]

    async def close(self) -> None:
        """It holds nothing."""

    async def look_up(self, host: str, port: int) -> list[Address]:
        """Raises EgressRefused unless a connection may be made to every address of this host, httpx's errors when it
        has none."""
        addresses = await self._addresses(host, port)
        self._policy.check(host, port, addresses, tls=self._tls)
        return addresses

    async def _addresses(self, host: str, port: int) -> list[Address]:
        name = host_name(host)
        if address := as_address(name):
            return [address]
        try:
            async with asyncio.timeout(_LOOKUP_SECONDS):
                found = await self._resolve(name, port)
        except TimeoutError:
            raise httpx.ConnectTimeout(f"Looking up “{host}” took too long.") from None
        except (OSError, UnicodeError):
            raise httpx.ConnectError(f"“{host}” can't be found. Check the spelling of the address.") from None
        addresses = [as_address(text) for text in found]
        if None in addresses:
            # An address with a zone id belongs to one of this machine's links.
            raise EgressRefused(f"“{host}” points to an address that is only valid on this machine.")
        return [address for address in addresses if address is not None]
