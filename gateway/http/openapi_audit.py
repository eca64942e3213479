"""What the audit log's chain and bulk changes are answered with, for the OpenAPI document."""

import msgspec

from gateway.domain.tenant import TenantLimits


class _Answer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class HeadAnswer(_Answer):
    """An entry and its hash, to be written down elsewhere."""

    id: int
    hash: str


class MisfitAnswer(_Answer):
    """The first entry that does not fit, and why."""

    id: int
    why: str


class ChainAnswer(_Answer):
    """A look at the chain: whether all that was checked fits, how many entries that was, the last
    of them, and from which `from_id` on to go on; null at the end."""

    fits: bool
    checked: int
    head: HeadAnswer | None
    misfit: MisfitAnswer | None
    next_id: int | None


class BulkItem(_Answer):
    """A tenant's limits as they now are, and whether they are others than before."""

    tenant_id: str
    changed: bool
    limits: TenantLimits


class BulkAnswer(_Answer):
    """A change of many tenants' limits. `change_id` is that of its audit entries, null where
    nothing was another than before."""

    change_id: str | None
    items: list[BulkItem]
