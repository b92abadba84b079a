"""Which addresses, hosts and URLs may be reached. Pure decisions, no network."""

from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_admin.egress import EgressRefused, Policy, check_url, origin_of, parse_allow, parse_origin
from agents_admin.egress.addresses import as_address, why_not_public
from agents_admin.egress.policy import host_name

PRIVATE_V4 = (
    st.ip_addresses(network="10.0.0.0/8")
    | st.ip_addresses(network="127.0.0.0/8")
    | st.ip_addresses(network="172.16.0.0/12")
    | st.ip_addresses(network="192.168.0.0/16")
    | st.ip_addresses(network="169.254.0.0/16")
    | st.ip_addresses(network="100.64.0.0/10")
    | st.ip_addresses(network="224.0.0.0/3")
    | st.ip_addresses(network="0.0.0.0/8")
)
WAYS_TO_WRITE_V4_IN_V6 = ["::ffff:0:0", "::", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::", "2001:db8::"]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "169.254.169.254",
        "172.31.255.255",
        "192.0.0.192",
        "192.168.1.1",
        "198.18.0.1",
        "203.0.113.9",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::808:808",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2a00::5efe:10.0.0.1",
        "3fff::1",
        "4000::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ],
)
def test_an_address_that_is_not_public_is_told_apart(address):
    assert why_not_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"],
)
def test_a_public_address_is_public(address):
    assert why_not_public(ip_address(address)) is None


@given(PRIVATE_V4, st.sampled_from(WAYS_TO_WRITE_V4_IN_V6))
def test_a_private_address_stays_private_however_it_is_wrapped(inner, prefix):
    assert why_not_public(inner)
    assert why_not_public(IPv6Address(int(IPv6Address(prefix)) | int(inner)))
    assert why_not_public(IPv6Address(0x2002 << 112 | int(inner) << 80))


@given(st.ip_addresses(v=4))
def test_no_address_that_python_calls_not_global_is_public(address: IPv4Address):
    if not address.is_global:
        assert why_not_public(address)


@given(st.ip_addresses(v=6))
def test_no_ipv6_address_that_python_calls_not_global_is_public(address: IPv6Address):
    if not address.is_global and address.ipv4_mapped is None:
        assert why_not_public(address)


def check(host: str, *addresses: str, allow: str = "", port: int = 443, tls: bool = True) -> None:
    Policy(parse_allow(allow)).check(host, port, [ip_address(address) for address in addresses], tls=tls)


def test_a_host_with_one_private_address_among_public_ones_is_refused_in_words():
    with pytest.raises(EgressRefused) as refused:
        check("shop.example", "8.8.8.8", "10.0.0.5")
    assert refused.value.message == (
        "“shop.example” points to a private address (10.0.0.5). An administrator can allow it with EGRESS_ALLOW."
    )
    assert refused.value.address == "10.0.0.5"


def test_a_host_without_addresses_is_refused():
    with pytest.raises(EgressRefused):
        check("shop.example")


def test_an_allowed_host_may_be_private_and_plain_but_only_on_its_port():
    check("LLM.internal.", "10.0.0.5", allow="llm.internal:8080", port=8080, tls=False)
    with pytest.raises(EgressRefused):
        check("llm.internal", "10.0.0.5", allow="llm.internal:8080", port=8081)
    with pytest.raises(EgressRefused):
        check("other.internal", "10.0.0.5", allow="llm.internal")


def test_an_allowed_network_opens_its_addresses_under_any_name_and_spelling():
    check("llm.internal", "10.0.0.5", allow="10.0.0.0/8", tls=False)
    check("llm.internal", "::ffff:10.0.0.5", allow="10.0.0.0/8")
    check("::1", "::1", allow="[::1]:9000", port=9000, tls=False)
    with pytest.raises(EgressRefused):
        check("llm.internal", "10.0.0.5", "192.168.0.1", allow="10.0.0.0/8")


def test_plain_http_to_a_public_host_is_refused():
    with pytest.raises(EgressRefused, match="Use https"):
        check("shop.example", "8.8.8.8", tls=False)


def test_every_form_of_an_entry_is_read():
    entries = parse_allow(
        " llm.internal , 10.0.0.0/8,127.0.0.1:8080,[::1]:9000, fd00::/8, [fd00::]:443, ::1, bücher.example,"
    )
    assert [(str(entry.target), entry.port) for entry in entries] == [
        ("llm.internal", None),
        ("10.0.0.0/8", None),
        ("127.0.0.1/32", 8080),
        ("::1/128", 9000),
        ("fd00::/8", None),
        ("fd00::/128", 443),
        ("::1/128", None),
        ("xn--bcher-kva.example", None),
    ]


@pytest.mark.parametrize(
    "entry",
    [
        "*",
        "*.internal",
        "http://llm.internal",
        "llm.internal:0",
        "llm.internal:x",
        "llm.internal:99999",
        "llm:٣",
        "[::1",
        "[::1]x",
        "10.0.0.5/8",
        "user@host",
        "1.2.3",
        "0x7f.1",
        "::g",
        "a/b",
        "-",
        "a\xa0b",
    ],
)
def test_an_entry_that_cannot_be_read_is_named(entry):
    with pytest.raises(ValueError, match="EGRESS_ALLOW: “"):
        parse_allow(f"llm.internal,{entry}")


def test_a_network_with_host_bits_gets_a_suggestion():
    with pytest.raises(ValueError, match=r"Did you mean 10\.0\.0\.0/8\?"):
        parse_allow("10.0.0.5/8")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://shop.example/",
        "file:///etc/passwd",
        "//shop.example/",
        "shop.example",
        "https://",
        "https://user:pw@shop.example/",
        "https://user@shop.example/",
        "https://shop.example:0/",
        "https://shop.example:70000/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://127.0.0.1.1/",
        "https://shop..example/",
        "https://shop.example../",
        "https://a%2eb/",
        "https://\uff11\uff12\uff17.0.0.1/",
        "https://[fe80::1%25eth0]/",
        "https://[::1/",
        "https://shop.example\\@evil.example/",
        "https://shop example/",
        "https://shop.example/\n",
        "https://" + "a" * 300 + ".example/",
    ],
)
def test_an_odd_url_is_refused_before_its_host_is_looked_up(url):
    with pytest.raises(EgressRefused) as refused:
        check_url(url)
    assert "pw" not in refused.value.message


@given(st.text(max_size=60))
def test_any_text_is_a_url_or_refused(text):
    for url in (text, f"https://{text}", f"https://shop.example{text}"):
        with suppress(EgressRefused):
            origin_of(check_url(url))


@given(st.text(alphabet="0123456789abcdefx.:[]%-_", max_size=20))
def test_a_host_is_compared_in_one_spelling(text):
    try:
        name = host_name(text)
    except EgressRefused:
        return
    assert host_name(name) == name
    assert as_address(name) or not name[-1].isdigit() or not name.rpartition(".")[2].isdigit()


def test_equal_origins_have_one_spelling():
    assert (
        parse_origin("HTTPS://Shop.Example.:443/") == parse_origin("https://shop.example") == "https://shop.example:443"
    )
    assert parse_origin("http://[::1]:8080") == "http://[::1]:8080"
    assert parse_origin("https://bücher.example") == "https://xn--bcher-kva.example:443"


@pytest.mark.parametrize(
    "text", ["https://shop.example/orders", "https://shop.example?x", "shop.example", "", "https://a@b"]
)
def test_more_or_less_than_an_origin_is_refused_in_words(text):
    with pytest.raises(EgressRefused):
        parse_origin(text)
