"""The billing policy as Postgres holds it, for whoever checks a bill by its own means."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.policy import PolicyRow
from billing.postgres.tables import billing_policy


async def load_policies(db: AsyncConnection) -> dict[int, dict[str, PolicyRow]]:
    """Every version there is, by outcome: also those of a release that is newer than this one."""
    policies: dict[int, dict[str, PolicyRow]] = {}
    for row in await db.execute(select(billing_policy)):
        of_version = policies.setdefault(row.version, {})
        of_version[row.outcome] = PolicyRow(row.with_output, row.without_output)
    return policies
