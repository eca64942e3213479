"""Seeds of the choices of one prompt: one request is several streams, each with its own chance."""

import msgspec

from gateway.wire.request import CompletionRequest, RawFields

SEED_MAX = 2**63 - 1


def seed_of(request: CompletionRequest, sample: int) -> RawFields:
    """The `seed` field of that choice: the tenant's for the first, so that it is the answer of a
    request for one; for each further one the next number, or all choices would be the same."""
    given = request.forward.get("seed")
    if sample == 0 or given is None:
        return {}
    following = msgspec.json.decode(given, type=int) + sample
    if following > SEED_MAX:
        following -= 2**64
    return {"seed": msgspec.Raw(str(following).encode())}
