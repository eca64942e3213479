"""How much of a gateway's memory bodies may take whose requests are not admitted yet.

Such a body costs its sender nothing: no limit of a tenant counts it, and it may come as slowly as
`body_read_ms_max` lets it, or wait in the queue. So what has really arrived is counted, piece by
piece, whatever its length was said to be, until its request is admitted or refused.

- *A tenant holds no more than is still free.* One alone has half of all room; n that want all they
  can get have an (n + 1)th each, and as much is left for who comes next. A fixed share would be
  idle with one tenant and gone with a few.
- *The last eighth is for bodies of up to 64 KiB*, so that however many tenants send large ones,
  those that most requests have find room.

A refusal is a 503 `no_capacity` in both cases, never a 429: what is free depends on others, so it
is no limit of the tenant's own, of which it could read, and another gateway may have room.
"""

from typing import Self

from gateway.errors import Overloaded

SMALL_BYTES = 64 * 1024
TIMES_LARGEST_MIN = 3
"""Room for so many of the largest bodies lets a tenant alone send one."""
_FOR_SMALL_DIVISOR = 8


class HeldBody:
    """One body, of which nothing is held any more when the context ends."""

    __slots__ = ("_bytes", "_room", "_tenant_id")

    def __init__(self, room: "BodyRoom", tenant_id: str) -> None:
        self._room = room
        self._tenant_id = tenant_id
        self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._room.give_back(self._tenant_id, self._bytes)
        self._bytes = 0

    def grow(self, size: int) -> None:
        """So many bytes more have arrived. Raises Overloaded where there is no room for them, which
        are not counted then; those before are until the context ends."""
        if size:
            self._room.take(self._tenant_id, size, is_small=self._bytes + size <= SMALL_BYTES)
            self._bytes += size


class BodyRoom:
    """The room of one gateway, `bytes_max` in all."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._large_bytes_max = bytes_max - bytes_max // _FOR_SMALL_DIVISOR
        self._of_tenants: dict[str, int] = {}
        self.held_bytes = 0

    def body_of(self, tenant_id: str) -> HeldBody:
        """A body that begins to arrive: it holds nothing yet."""
        return HeldBody(self, tenant_id)

    def of_tenant(self, tenant_id: str) -> int:
        """Bytes that a tenant holds."""
        return self._of_tenants.get(tenant_id, 0)

    def take(self, tenant_id: str, size: int, *, is_small: bool) -> None:
        """Raises Overloaded, and takes nothing, where the tenant would hold more than were free."""
        own = self._of_tenants.get(tenant_id, 0) + size
        held = self.held_bytes + size
        if own > (self._bytes_max if is_small else self._large_bytes_max) - held:
            raise Overloaded("there is no room for this body at the moment", code="no_capacity")
        self._of_tenants[tenant_id] = own
        self.held_bytes = held

    def give_back(self, tenant_id: str, size: int) -> None:
        """What `take` took of a tenant, or a part of it."""
        if not size:
            return
        self.held_bytes -= size
        left = self._of_tenants[tenant_id] - size
        if left:
            self._of_tenants[tenant_id] = left
        else:
            del self._of_tenants[tenant_id]
