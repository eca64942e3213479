"""What an admitted request holds, and what the journal remembers of it before it has ended."""

from uuid import UUID

import msgspec


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """Journaled before a request is forwarded: enough to bill or release it if its gateway dies."""

    request_id: UUID
    tenant_id: str
    api_key_id: str
    model: str
    request_class: str
    admitted_at_ms: int
    prompt_tokens: int
    """As admission counted them: an estimate, never billed while the engine says otherwise."""
    reserved_tokens: int
    sequences: int
    queue_ms: int = 0
    currency: str | None = None
    """What the tenant is billed in; None in entries of a release that did not rate."""
