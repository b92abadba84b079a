"""Which addresses are public. A table of our own: `ipaddress.is_global` calls several ways to write 127.0.0.1, and some
cloud metadata addresses, global.

Source: the IANA special-purpose registries for IPv4 and IPv6, RFC 6052 and 8215 (NAT64), RFC 5214 (ISATAP), and the
documentation of cloud providers for their metadata services.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

type Address = IPv4Address | IPv6Address
type Network = IPv4Network | IPv6Network

_OWN = "an address of this machine itself"
_PRIVATE = "a private address"
_LOCAL = "a link-local address"
_METADATA = "a cloud metadata address"
_MULTICAST = "a multicast address"
_RESERVED = "a reserved address"

_NOT_PUBLIC: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), words)
    for words, networks in {
        _METADATA: "169.254.169.254/32 169.254.170.2/32 100.100.100.200/32 168.63.129.16/32 192.0.0.192/32 "
        "fd00:ec2::254/128 fd20:ce::254/128",
        _OWN: "0.0.0.0/8 127.0.0.0/8 ::/128 ::1/128",
        _PRIVATE: "10.0.0.0/8 100.64.0.0/10 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10 64:ff9b:1::/48",
        _LOCAL: "169.254.0.0/16 fe80::/10",
        _MULTICAST: "224.0.0.0/4 ff00::/8",
        _RESERVED: "192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 "
        # Teredo, ORCHID and benchmarking are in the first; documentation; 6to4; the returned 6bone.
        "2001::/23 2001:db8::/32 3fff::/20 2002::/16 3ffe::/16",
    }.items()
    for network in networks.split()
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


def as_address(text: str) -> Address | None:
    """The address that a text writes out in full; None for names, short or octal forms and zone ids."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return None if isinstance(address, IPv6Address) and address.scope_id else address


def plain(address: Address) -> Address:
    """The IPv4 address inside `::ffff:a.b.c.d`, which is where such a connection goes; any other as it is."""
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def why_not_public(address: Address) -> str | None:
    """Words such as “a private address”, or None when the address, and any IPv4 address inside it, is public."""
    address = plain(address)
    for network, words in _NOT_PUBLIC:
        if address in network:
            return words
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return why_not_public(_last_four(address))
    if address not in _GLOBAL_UNICAST:
        return _RESERVED
    return why_not_public(_last_four(address)) if (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP else None


def _last_four(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFF_FFFF)
