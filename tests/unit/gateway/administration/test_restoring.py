"""Revocations that only Redis knows are written again, and none that is merely on its way."""

from gateway.adapters.revocations import Revocation
from gateway.administration.restoring import ACTOR, RevokedAgain
from gateway.domain.tenant import ApiKey, Tenant
from gateway.errors import NotFound

KEY = Revocation("key", "key-1", 50, 1_000)
TENANT = Revocation("tenant", "acme", 40, 1_000)


class Withdrawn:
    """What was withdrawn, in order."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []

    async def revoke_key(self, actor: str, key_id: str) -> ApiKey:
        self.done.append((actor, key_id))
        raise NotFound("made after the backup")

    async def update_tenant(
        self, actor: str, tenant_id: str, *, suspended: bool | None = None
    ) -> Tenant:
        assert suspended
        self.done.append((actor, tenant_id))
        raise NotFound("as it stands here")


async def test_what_is_unwritten_in_two_looks_is_written() -> None:
    """In the order of the changes; one that came with the second look waits for the third."""
    found: list[Revocation] = [KEY]
    withdrawn = Withdrawn()
    again = RevokedAgain(withdrawn, lambda: found)
    await again.look()
    assert withdrawn.done == []
    found.append(TENANT)
    await again.look()
    assert withdrawn.done == [(ACTOR, "key-1")]
    await again.look()
    assert withdrawn.done[1:] == [(ACTOR, "acme"), (ACTOR, "key-1")]


async def test_a_directory_that_does_not_see_postgres_says_nothing() -> None:
    """What it saw before does not count either: two looks in a row are needed."""
    answers: list[list[Revocation] | None] = [[KEY], None, [KEY]]
    withdrawn = Withdrawn()
    again = RevokedAgain(withdrawn, lambda: answers.pop(0))
    for _ in range(3):
        await again.look()
    assert withdrawn.done == []
