"""How a page says which gateways go by a change already."""

from gateway.domain.confirmation import Confirmation, Unknown

_WHY = {
    Unknown.NO_STORE: "Redis is not set up here",
    Unknown.STORE_UNAVAILABLE: "Redis cannot be reached",
    Unknown.GATEWAYS_UNHEARD: "Redis has not yet heard of all of them",
    Unknown.CHANGE_UNREAD: "Postgres did not say in time",
}
GATEWAYS_NAMED_MAX = 5


def confirmed_sentence(found: Confirmation) -> str:
    """One sentence: all, who has not, or why nobody knows."""
    if found.unconfirmed is None:
        why = _WHY[found.unknown] if found.unknown is not None else "nobody said"
        return f"Which gateways go by it already is not known: {why}."
    if not found.unconfirmed:
        count = len(found.confirmed)
        return "The gateway goes by it." if count == 1 else f"All {count} gateways go by it."
    named = ", ".join(found.unconfirmed[:GATEWAYS_NAMED_MAX])
    more = len(found.unconfirmed) - GATEWAYS_NAMED_MAX
    also = f" and {more} more" if more > 0 else ""
    return f"Not confirmed yet by {named}{also}: what they still serve may go by how it was."
