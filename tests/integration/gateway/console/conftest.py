"""The console of a real gateway in this process, visited as a browser visits it."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
from admin_api import client_of
from console_visitor import ME, Visitor
from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from litestar import Litestar

from gateway.administration import Administration
from gateway.app import Gateway, create_app
from gateway.console import rendering
from gateway.domain.tenant import Model, Worker
from gateway.settings import Settings


class Compiled(BytecodeCache):
    """Templates as they were compiled, by name; of another source they are compiled again."""

    def __init__(self) -> None:
        self._codes: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill in what is known."""
        if bucket.key in self._codes:
            bucket.bytecode_from_string(self._codes[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep it."""
        self._codes[bucket.key] = bucket.bytecode_to_string()


COMPILED = Compiled()


@pytest.fixture(scope="module", autouse=True)
def _compiled_once() -> Iterator[None]:
    # Each test has an application of its own, whose first page takes half a second to compile.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendering, "Environment", partial(Environment, bytecode_cache=COMPILED))
        yield


@pytest.fixture
async def gateway(database_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[Gateway]:
    """With the model `m`, the worker `w`, which nobody answers for, and the tenant `acme`."""
    settings = Settings(
        database_url=database_url, redis_url=redis_url, journal_dir=tmp_path / "journal"
    )
    made = Gateway(settings)
    administration = Administration(made.postgres)
    await administration.register_model(
        ME, Model(id="m", context_tokens=2048, max_output_tokens=512)
    )
    await administration.register_worker(ME, Worker(id="w", model="m", url="http://127.0.0.1:1"))
    await administration.create_tenant(ME, "acme", "Acme")
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def app(gateway: Gateway) -> Litestar:
    """The application as `weir serve` composes it."""
    return create_app(gateway)


@pytest.fixture
async def visitor(gateway: Gateway, app: Litestar) -> AsyncIterator[Visitor]:
    """Somebody who is not logged in."""
    async with client_of(app) as client:
        yield Visitor(client, Administration(gateway.postgres, redis=gateway.redis))
