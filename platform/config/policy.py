"""The content security policies: what a browser may load and run on a page."""

from typing import Any

from django.utils.csp import CSP

PAGES: dict[str, Any] = {
    "default-src": [CSP.SELF],
    "script-src": [CSP.NONCE],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "object-src": [CSP.NONE],
    "base-uri": [CSP.NONE],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
}

# Unfold's pages evaluate Alpine expressions and set style attributes (measured: nothing more).
ADMIN: dict[str, Any] = PAGES | {
    "script-src": [CSP.SELF, CSP.UNSAFE_EVAL],
    "style-src": [CSP.SELF, CSP.UNSAFE_INLINE],
}
