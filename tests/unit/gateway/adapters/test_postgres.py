"""Database URLs mean what they mean to psql."""

import pytest

from gateway.adapters.postgres import _asyncpg_dsn, async_engine
from gateway.settings import SettingsError


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("postgresql://u:p@h:1/db", "postgresql://u:p@h:1/db"),
        ("postgres://h/db", "postgres://h/db"),
        ("postgresql+asyncpg://h/db", "postgresql://h/db"),
        (
            "postgresql://postgres@/postgres?host=/tmp/a b",
            "postgresql://postgres@/postgres?host=%2Ftmp%2Fa+b",
        ),
        (
            "postgresql://h1:1,h2:2/db?target_session_attrs=primary",
            "postgresql://h1:1,h2:2/db?target_session_attrs=primary",
        ),
        (
            "postgresql://h/db?connect_timeout=5&sslmode=require&keepalives=1",
            "postgresql://h/db?sslmode=require",
        ),
        ("postgresql://h/db?application_name=weir", "postgresql://h/db?application_name=weir"),
    ],
)
def test_what_libpq_alone_knows_is_left_out(given: str, used: str) -> None:
    """The rest reaches asyncpg as it was."""
    assert _asyncpg_dsn(given) == used


@pytest.mark.parametrize("url", ["", "mysql://h/db", "h/db", "host=h dbname=db"])
def test_other_databases_are_refused(url: str) -> None:
    """Without repeating the URL, which may hold a password."""
    with pytest.raises(SettingsError) as refused:
        async_engine(url)
    assert "postgresql://" in str(refused.value)
    assert url == "" or url not in str(refused.value)
