"""What `weir dev` says to a person once everything serves."""

from pathlib import Path

import pytest

from gateway.dev_ready import Pids, Ready, ReadyWorker, welcome
from gateway.domain.tenant import RequestClass


@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize(("engine", "said"), [("simulated", "m (simulated)."), ("local", "m.")])
def test_a_simulated_model_is_called_so(engine: str, said: str, *, seeded: bool) -> None:
    """In the line that names the model."""
    keys = {RequestClass.INTERACTIVE: "k", RequestClass.BATCH: "b"}
    document = Ready(
        gateways=["http://g"],
        console="http://g/console",
        database_url="",
        redis_url="",
        workers=[ReadyWorker("w", "http://w", engine)],
        hosted=None,
        pids=Pids([], [], None, None, None),
        users={},
        tenants={"acme": keys} if seeded else {},
        models=["m"],
    )
    text = welcome(document, ready_path=Path("d/ready.json"), log_folder=Path("d/log"))
    assert text.splitlines()[1] == f"Weir serves {said}"
