"""A real gateway, and somebody of each role."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from roles_world import RolesWorld, roles_world


@pytest.fixture
async def world(database_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[RolesWorld]:
    """All of it, on servers of this test's own."""
    async with roles_world(database_url, redis_url, tmp_path / "journal") as made:
        yield made
