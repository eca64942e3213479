"""`weir` commands on a fresh database."""

import pytest
from weir_command import Weir


@pytest.fixture
def weir(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, database_url: str
) -> Weir:
    """The command, with $WEIR_DATABASE_URL set."""
    monkeypatch.setenv("WEIR_DATABASE_URL", database_url)
    monkeypatch.delenv("WEIR_REDIS_URL", raising=False)
    return Weir(capsys)
