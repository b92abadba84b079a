"""The one guarded way out to the network (security rule 4): all requests go through `client` and `fetch`."""

from agents_admin.egress.fetching import Caps, Fetched, FetchError, SecretHeaders, fetch
from agents_admin.egress.policy import EgressRefused, Policy, check_url, origin_of, parse_allow, parse_origin
from agents_admin.egress.transport import Resolve, client

__all__ = [
    "Caps",
    "EgressRefused",
    "FetchError",
    "Fetched",
    "Policy",
    "Resolve",
    "SecretHeaders",
    "check_url",
    "client",
    "fetch",
    "origin_of",
    "parse_allow",
    "parse_origin",
]
