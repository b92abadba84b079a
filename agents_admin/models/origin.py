"""Addresses that people type: checked by the rules of egress when the row is saved, without looking up a host."""

from typing import Any

import httpx
from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models

from agents_admin.egress.addresses import Address, Network, as_address, plain
from agents_admin.egress.policy import EgressRefused, check_url, host_name, parse_allow, parse_origin

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def short_origin(text: str) -> str:
    """`scheme://host[:port]` as browsers write it: small letters, no default port. Raises EgressRefused."""
    origin = parse_origin(text)
    return origin.removesuffix(_DEFAULT_PORTS[origin.partition(":")[0]])


class OriginFormField(forms.CharField):
    def to_python(self, value: object) -> str:
        return _typed_origin(value)


class OriginField(models.CharField):
    """A site or service, kept as `short_origin` writes it."""

    def to_python(self, value: object) -> str:
        return _typed_origin(value)

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(form_class=OriginFormField, **kwargs)


def _typed_origin(value: object) -> str:
    text = str(value or "").strip()
    try:
        return short_origin(text) if text else ""
    except EgressRefused as error:
        raise ValidationError(error.message) from None


def service_address(value: str) -> None:
    """A validator: an address that requests may go to, plain http only where EGRESS_ALLOW opens it."""
    try:
        url = check_url(value)
        allowed = url.scheme == "https" or _opened(url)
    except EgressRefused as error:
        raise ValidationError(error.message) from None
    if not allowed:
        raise ValidationError(
            f"“{url.host}” would be reached by plain http, where anybody on the way can read along. Use https, or let "
            "the one who runs the server add it to EGRESS_ALLOW."
        )


def _opened(url: httpx.URL) -> bool:
    """Whether EGRESS_ALLOW may open this. A name may point into a listed network: its lookup will tell."""
    host = host_name(url.raw_host.decode("ascii"))
    address = as_address("127.0.0.1" if host == "localhost" else host)
    return any(
        entry.port in (None, url.port or 80) and _matches(entry.target, host, address)
        for entry in parse_allow(",".join(settings.EGRESS_ALLOW))
    )


def _matches(target: str | Network, host: str, address: Address | None) -> bool:
    if isinstance(target, str):
        return target == host
    return target.num_addresses > 1 if address is None else plain(address) in target
