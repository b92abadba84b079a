"""Security rule 2: every address is declared with who may use it."""

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver

from web.routes import ROUTES


def addresses(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    for entry in resolver.url_patterns:
        address = prefix + str(entry.pattern)
        if isinstance(entry, URLPattern) or entry.app_name == "admin":
            yield address
        else:
            yield from addresses(entry, address)


def test_every_address_says_who_may_use_it():
    assert set(addresses(get_resolver())) - set(ROUTES) == set()


def test_the_table_lists_no_address_that_is_gone():
    assert set(ROUTES) - set(addresses(get_resolver())) == set()
