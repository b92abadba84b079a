"""Where requests may go: decided in plain Python, before any connection is opened (security rule 4)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_network

import httpx

from agents_admin.egress.addresses import Address, Network, as_address, plain, why_not_public

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|\d+)")
_MAX_NAME = 253
_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOW_TO_ALLOW = "An administrator can allow it with EGRESS_ALLOW."


class EgressRefused(Exception):  # noqa: N818 - it says what happened
    """A request that may not leave. `message` is for people and names the host (an administrator's text, never a
    secret); `address` is what the host points to, for logs and administrators."""

    def __init__(self, message: str, address: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.address = address


@dataclass(frozen=True, slots=True)
class Allowed:
    """One entry of EGRESS_ALLOW: a host name or a network, on one port or on all."""

    target: str | Network
    port: int | None = None

    def covers(self, name: str, address: Address, port: int) -> bool:
        """Whether a connection to this address, looked up under this name, is the one that was allowed."""
        if self.port not in (None, port):
            return False
        return name == self.target if isinstance(self.target, str) else plain(address) in self.target


@dataclass(frozen=True, slots=True)
class Policy:
    """Public addresses by https, and what `allow` opens: there also private addresses and plain http."""

    allow: tuple[Allowed, ...] = ()

    def check(self, host: str, port: int, addresses: Sequence[Address], *, tls: bool) -> None:
        """Raises EgressRefused unless every address that `host` points to may be connected to."""
        if not addresses:
            raise EgressRefused(f"“{host}” has no address.")
        name = host_name(host)
        for address in addresses:
            if any(entry.covers(name, address, port) for entry in self.allow):
                continue
            if not tls:
                raise EgressRefused(
                    f"“{host}” would be reached by plain http, where anybody on the way can read along. "
                    f"Use https. {_HOW_TO_ALLOW}",
                    str(address),
                )
            if words := why_not_public(address):
                found = "is" if as_address(name) else "points to"
                raise EgressRefused(f"“{host}” {found} {words} ({address}). {_HOW_TO_ALLOW}", str(address))


def check_url(url: str | httpx.URL) -> httpx.URL:
    """The parsed URL. Raises EgressRefused for one that no policy lets out, without looking up its host."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError, TypeError):
        raise EgressRefused("This is not a valid address. Write it like https://example.com/path.") from None
    if parsed.scheme not in _DEFAULT_PORTS:
        raise EgressRefused("Only addresses that begin with https:// (or http://) can be called.")
    if parsed.userinfo:
        raise EgressRefused("An address can't hold a user name or password. Use a credential for it.")
    if parsed.port is not None and not 0 < parsed.port < 65_536:
        raise EgressRefused(f"{parsed.port} is not a port: ports go from 1 to 65535.")
    host_name(parsed.raw_host.decode("ascii"))
    return parsed


def host_name(host: str) -> str:
    """The host as it is compared: lower case, no final dot. Raises EgressRefused for what is neither a host name nor an
    address written out in full (`0x7f.1`, `2130706433`, zone ids, empty labels)."""
    name = host.lower().removesuffix(".")
    if address := as_address(name):
        return str(plain(address))
    shown = host[:100]
    if not name or len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise EgressRefused(f"“{shown}” is not a valid host name.")
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        raise EgressRefused(f"“{shown}” is an odd way to write an address. Write all four numbers, as in 192.0.2.10.")
    return name


def origin_of(url: httpx.URL) -> str:
    """`scheme://host:port` in one spelling, the default port written out, so that equal origins are equal strings."""
    host = host_name(url.raw_host.decode("ascii"))
    return f"{url.scheme}://{f'[{host}]' if ':' in host else host}:{url.port or _DEFAULT_PORTS[url.scheme]}"


def parse_origin(text: str) -> str:
    """`origin_of` for what a person typed. Raises EgressRefused when it is more than an origin, or none."""
    url = check_url(text.strip())
    if url.raw_path not in (b"/", b"") or url.fragment:
        raise EgressRefused("An origin has no path: write it like https://shop.example or https://shop.example:8443.")
    return origin_of(url)


def parse_allow(text: str) -> tuple[Allowed, ...]:
    """The entries of EGRESS_ALLOW, separated by commas. Raises ValueError naming the entry that can't be read."""
    return tuple(_parse_entry(entry.strip()) for entry in text.split(",") if entry.strip())


def _parse_entry(entry: str) -> Allowed:
    target, port = _split_port(entry)
    try:
        network = ip_network(target)
    except ValueError:
        return Allowed(_parse_name(target, entry), port)
    return Allowed(network, port)


def _split_port(entry: str) -> tuple[str, int | None]:
    if entry.startswith("["):
        target, closed, rest = entry[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        if not closed or colon not in ("", ":"):
            raise _unreadable(entry)
    elif entry.count(":") > 1:
        return entry, None
    else:
        target, colon, port = entry.partition(":")
    if not colon:
        return target, None
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65_536):
        raise ValueError(f"EGRESS_ALLOW: “{port}” in “{entry}” is not a port. Ports go from 1 to 65535.")
    return target, int(port)


def _parse_name(target: str, entry: str) -> str:
    if set(target) & set("/@?#\\"):
        raise _unreadable(entry, _suggestion(target))
    try:
        # The parser that requests go through, so that both write a name in other scripts the same way.
        return host_name(httpx.URL(f"https://{target}/").raw_host.decode("ascii"))
    except (httpx.InvalidURL, EgressRefused):
        raise _unreadable(entry) from None


def _suggestion(target: str) -> str:
    try:
        return f" Did you mean {ip_network(target, strict=False)}?"
    except ValueError:
        return ""


def _unreadable(entry: str, hint: str = "") -> ValueError:
    return ValueError(
        f"EGRESS_ALLOW: “{entry}” is not a host name, address or network, optionally with a port.{hint} "
        "Examples: llm.internal, 10.0.0.0/8, 127.0.0.1:8080, [::1]:9000."
    )
