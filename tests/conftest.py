"""Fixtures that every test may use. Servers are real; they start when the first test asks."""

from collections.abc import AsyncIterator, Iterator

import pytest

pytest.register_assert_rewrite(
    "memory_gateway", "memory_ports", "scripted_engine", "servers", "weir_dev"
)

import servers  # noqa: E402 - its assertions show what they compared


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Stores]:
    """The session's Valkey and Postgres."""
    with servers.running_stores(tmp_path_factory.mktemp("stores")) as started:
        yield started


@pytest.fixture
def redis_url(stores: servers.Stores) -> str:
    """The URL of an empty Valkey, without scripts. One test at a time has it."""
    servers.flush(stores.redis_url)
    return stores.redis_url


@pytest.fixture
async def empty_database_url(stores: servers.Stores) -> AsyncIterator[str]:
    """The URL of a database with nothing in it, dropped after the test."""
    url = await servers.fresh_database(stores.postgres)
    yield url
    await servers.drop_database(stores.postgres, url)


@pytest.fixture
async def database_url(stores: servers.Stores) -> AsyncIterator[str]:
    """The URL of a database of this test's own, migrated to head, dropped after the test."""
    await servers.make_template(stores.postgres)
    url = await servers.fresh_database(stores.postgres, template=servers.TEMPLATE)
    yield url
    await servers.drop_database(stores.postgres, url)


@pytest.fixture
def free_port() -> int:
    """A port that nothing listens on, below those given to outgoing connections."""
    return servers.free_port()
