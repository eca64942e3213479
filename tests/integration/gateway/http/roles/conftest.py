"""A real gateway, and somebody of each role, for all tests of a file: each takes subjects of its
own where it changes them."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import servers
from roles_world import RolesWorld, roles_world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(
    stores: servers.Stores, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RolesWorld]:
    """All of it, on a database of this file's own."""
    await servers.make_template(stores.postgres)
    url = await servers.fresh_database(stores.postgres, template=servers.TEMPLATE)
    servers.flush(stores.redis_url)
    journal = tmp_path_factory.mktemp("roles") / "journal"
    async with roles_world(url, stores.redis_url, journal) as made:
        yield made
    await servers.drop_database(stores.postgres, url)
