"""The guarded client against servers on loopback, with a fake resolver. Nothing here leaves the machine."""

import asyncio
import gzip
import ssl
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agents_admin.egress import Caps, EgressRefused, FetchError, Policy, SecretHeaders, client, fetch, parse_allow
from tests.loopback import Server, answer, redirect, serving

HOSTS = {
    "shop.internal": ["127.0.0.1"],
    "other.internal": ["127.0.0.1"],
    "mixed.example": ["8.8.8.8", "127.0.0.1"],
    "zoned.example": ["127.0.0.1", "fe80::1%eth0"],
}


async def resolve(host: str, port: int) -> list[str]:
    if host not in HOSTS:
        raise OSError("unknown")
    return HOSTS[host]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as loopback:
        yield loopback


@asynccontextmanager
async def guarded(allow: str = "shop.internal,other.internal") -> AsyncIterator[httpx.AsyncClient]:
    async with client(Policy(parse_allow(allow)), resolve) as guarded_client:
        yield guarded_client


async def get(server: Server, path: str, host: str = "shop.internal", **options):
    async with guarded() as http:
        return await fetch(http, http.build_request("GET", f"http://{host}:{server.port}{path}"), **options)


async def test_an_allowed_host_answers_and_is_told_its_own_name(server):
    server.answers["/a?b=1"] = answer(b"hello")
    fetched = await get(server, "/a?b=1")
    assert (fetched.status, fetched.body, fetched.truncated) == (200, b"hello", False)
    assert f"host: shop.internal:{server.port}" in server.requests[0].lower()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "https://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "https://[::ffff:127.0.0.1]:{port}/",
        "https://[64:ff9b::7f00:1]:{port}/",
        "https://mixed.example:{port}/",
        "https://zoned.example:{port}/",
        "http://2130706433:{port}/",
        "http://0x7f.1:{port}/",
        "http://user:pw@shop.internal:{port}/",
        "ftp://shop.internal:{port}/",
    ],
)
async def test_what_is_not_allowed_is_refused_before_anything_is_connected(server, url, monkeypatch):
    monkeypatch.setitem(HOSTS, "localhost", ["127.0.0.1", "::1"])
    async with guarded() as http:
        with pytest.raises(EgressRefused):
            await http.get(url.format(port=server.port))
    assert server.connections == 0


async def test_an_address_of_one_of_the_machines_links_is_refused_beside_an_allowed_one(server):
    async with guarded("127.0.0.1") as http:
        with pytest.raises(EgressRefused, match="only valid on this machine"):
            await http.get(f"http://zoned.example:{server.port}/")
    assert server.connections == 0


async def test_the_environment_sets_no_proxy(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    server.answers["/"] = answer(b"direct")
    assert (await get(server, "/")).body == b"direct"


async def test_a_kept_connection_keeps_its_address_when_the_name_moves(server, monkeypatch):
    server.answers["/"] = answer(b"same")
    async with guarded("127.0.0.1") as http:
        for _ in range(3):
            assert (await http.get(f"http://shop.internal:{server.port}/")).text == "same"
            monkeypatch.setitem(HOSTS, "shop.internal", ["10.0.0.1"])
    assert server.connections == 1


async def test_each_new_connection_is_checked_again(server, monkeypatch):
    server.answers["/"] = answer(b"once", "Connection: close")
    async with guarded("127.0.0.1") as http:
        await http.get(f"http://shop.internal:{server.port}/")
        monkeypatch.setitem(HOSTS, "shop.internal", ["127.0.0.1", "10.0.0.1"])
        with pytest.raises(EgressRefused):
            await http.get(f"http://shop.internal:{server.port}/")


async def test_the_next_address_is_tried_when_the_first_does_not_answer(server, monkeypatch):
    monkeypatch.setitem(HOSTS, "shop.internal", ["127.0.0.2", "127.0.0.1"])
    server.answers["/"] = answer(b"second")
    assert (await get(server, "/")).body == b"second"


async def test_no_cookie_of_one_person_reaches_another(server):
    server.answers["/"] = answer(b"", "Set-Cookie: session=of-alice; Path=/")
    async with guarded() as http:
        for _ in range(2):
            await http.get(f"http://shop.internal:{server.port}/")
    assert "cookie" not in "".join(server.requests).lower()


async def test_a_resolver_that_hangs_does_not_hold_the_run(server, monkeypatch):
    async def hang(host: str, port: int) -> list[str]:
        await asyncio.sleep(60)
        return []

    monkeypatch.setattr("agents_admin.egress.transport._LOOKUP_SECONDS", 0.05)
    async with client(Policy(), hang) as http:
        with pytest.raises(FetchError) as failed:
            await fetch(http, http.build_request("GET", "https://slow.example/"))
    assert failed.value.timed_out


async def test_an_unknown_host_is_said_so(server):
    with pytest.raises(FetchError, match="can't be reached"):
        await get(server, "/", host="unknown.example")


async def test_a_redirect_is_followed_and_its_end_is_told(server):
    server.answers |= {"/a": redirect("/b"), "/b": answer(b"end")}
    fetched = await get(server, "/a")
    assert (fetched.body, fetched.url.path) == (b"end", "/b")


async def test_each_hop_is_checked(server):
    server.answers["/a"] = redirect(f"http://127.0.0.1:{server.port}/b")
    with pytest.raises(EgressRefused):
        await get(server, "/a")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "https://u:p@shop.internal/", "http://[::1", "//", "http://a b/"]
)
async def test_a_redirect_to_an_odd_address_ends_in_words(server, location):
    server.answers["/a"] = redirect(location)
    with pytest.raises((EgressRefused, FetchError)):
        await get(server, "/a")


async def test_redirects_are_counted(server):
    server.answers |= {f"/{n}": redirect(f"/{n + 1}") for n in range(5)}
    with pytest.raises(FetchError, match="more than 3 times"):
        await get(server, "/0")
    assert len(server.requests) == 4


async def test_a_secret_goes_to_its_origin_only(server):
    origin = f"http://shop.internal:{server.port}"
    secret = SecretHeaders({"Authorization": "Bearer s3cret"}, frozenset({origin}))
    server.answers |= {
        "/a": redirect("/b"),
        "/b": redirect(f"http://other.internal:{server.port}/c"),
        "/c": redirect(f"{origin}/d"),
        "/d": answer(b"end"),
    }
    await get(server, "/a", secret=secret)
    assert ["s3cret" in request for request in server.requests] == [True, True, False, True]
    assert "s3cret" not in repr(secret)


async def test_a_secret_for_another_origin_is_never_sent(server):
    server.answers["/a"] = answer(b"open")
    await get(server, "/a", secret=SecretHeaders({"X-Key": "s3cret"}, frozenset({"https://shop.internal:443"})))
    assert "s3cret" not in server.requests[0]


async def test_headers_and_data_stay_with_their_origin(server):
    foreign = f"http://other.internal:{server.port}"
    server.answers |= {
        "/get": redirect(f"{foreign}/end"),
        "/post": redirect(f"{foreign}/end", status="307 Temporary Redirect"),
        "/again": redirect("/end", status="307 Temporary Redirect"),
        "/end": answer(b"end"),
    }
    async with guarded() as http:
        for path in ("/get", "/again"):
            url = f"http://shop.internal:{server.port}{path}"
            await fetch(http, http.build_request("POST", url, headers={"X-Note": "private"}, json={"a": 1}))
        with pytest.raises(FetchError, match="not followed"):
            await fetch(http, http.build_request("POST", f"http://shop.internal:{server.port}/post", json={"a": 1}))
    first, moved, again, resent, last = server.requests
    assert "x-note" in first.lower()
    assert moved.startswith("GET /end")
    assert "x-note" not in moved.lower()
    assert "content-" not in moved.lower()
    assert again.endswith('{"a":1}')
    assert resent.startswith("POST /end")
    assert resent.endswith('{"a":1}')
    assert last.startswith("POST /post")


async def test_a_long_answer_is_cut(server):
    server.answers["/"] = answer(b"x" * 5000)
    fetched = await get(server, "/", caps=Caps(bytes=1000))
    assert (len(fetched.body), fetched.truncated) == (1000, True)


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_a_packed_answer_is_unpacked(server, encoding, pack):
    server.answers["/"] = answer(pack(b"hello"), f"Content-Encoding: {encoding}")
    assert (await get(server, "/")).body == b"hello"


async def test_a_gzip_bomb_is_stopped(server):
    server.answers["/"] = answer(gzip.compress(b"0" * 50_000_000), "Content-Encoding: gzip")
    with pytest.raises(FetchError, match="unpacks to far more"):
        await get(server, "/")


@pytest.mark.parametrize(
    "broken",
    [
        answer(gzip.compress(b"hello", mtime=0)[:-9], "Content-Encoding: gzip"),
        answer(b"not packed", "Content-Encoding: gzip"),
        answer(b"hello", "Content-Encoding: br"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"\x00\xff\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
    ],
)
async def test_a_broken_answer_is_a_plain_sentence(server, broken):
    server.answers["/"] = broken
    with pytest.raises(FetchError) as failed:
        await get(server, "/")
    assert str(server.port) not in failed.value.message


async def test_time_is_bounded_from_end_to_end(server):
    server.answers["/"] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"
    began = time.monotonic()
    with pytest.raises(FetchError, match=r"within 0\.2 seconds") as failed:
        await get(server, "/", caps=Caps(seconds=0.2))
    assert failed.value.timed_out
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("turns", range(6))
async def test_an_answer_that_is_broken_off_leaves_no_connection_open(server, turns):
    """However often, and whenever, whoever reads is told to stop: a model must not talk on to nobody."""
    server.answers["/"] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"
    async with guarded() as http:
        reading = asyncio.create_task(http.get(f"http://shop.internal:{server.port}/"))
        await server.asked.wait()
        reading.cancel()
        for _ in range(turns):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        async with asyncio.timeout(2):
            await server.left.wait()


async def test_nothing_is_sent_twice_when_the_service_breaks_off(server):
    """A GET may act, too: on a kept connection as well, nobody knows how far the first one came."""
    server.answers["/"] = answer(b"kept")
    async with guarded() as http:
        url = f"http://shop.internal:{server.port}"
        assert (await http.get(url)).text == "kept"
        server.breaks_off = True
        with pytest.raises(FetchError):
            await fetch(http, http.build_request("GET", f"{url}/act"))
    assert len(server.requests) == 2


async def test_a_header_that_can_t_be_sent_ends_in_words(server):
    async with guarded() as http:
        request = http.build_request("GET", f"http://shop.internal:{server.port}/", headers={"X-Key": "a\r\nb"})
        with pytest.raises(FetchError):
            await fetch(http, request)
    assert server.requests == []


async def test_tls_names_the_host_and_its_certificate_is_checked(tmp_path: Path, monkeypatch):
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path, "shop.internal"))
    context.sni_callback = lambda _connection, name, _context: names.append(name)
    listener = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = listener.sockets[0].getsockname()[1]
    async with guarded() as http:
        with pytest.raises(FetchError, match="can't be reached"):
            await fetch(http, http.build_request("GET", f"https://shop.internal:{port}/"))
    listener.close()
    assert names == ["shop.internal"]


def self_signed(folder: Path, host: str) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return file
