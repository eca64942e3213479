"""Shared assertions show what they compared."""

import pytest

pytest.register_assert_rewrite("memory_gateway", "memory_ports", "scripted_engine")
