"""How an answer says which gateways go by a change already."""

from gateway.administration.views import View
from gateway.domain.confirmation import Confirmation

UNCONFIRMED_HEADER = "x-weir-unconfirmed"
NONE, UNKNOWN = "none", "unknown"


def confirmation_view(found: Confirmation) -> View:
    """As fields of a body."""
    return {
        "confirmed": list(found.confirmed),
        "unconfirmed": None if found.unconfirmed is None else list(found.unconfirmed),
        "unknown": found.unknown,
    }


def confirmation_headers(found: Confirmation) -> dict[str, str]:
    """As a header, where the body is the thing itself: gateways by their ids with commas between,
    `none`, or `unknown; <why>`."""
    if found.unconfirmed is None:
        return {UNCONFIRMED_HEADER: f"{UNKNOWN}; {found.unknown}"}
    return {UNCONFIRMED_HEADER: ", ".join(found.unconfirmed) or NONE}
