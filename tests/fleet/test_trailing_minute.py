"""A limit of tokens a minute, over more than one minute of real time."""

import time
from pathlib import Path

import pytest
from weir_dev import together, weir_dev


@pytest.mark.timeout(200)
async def test_no_trailing_minute_passes_the_tpm(tmp_path: Path) -> None:
    """INV-3: 1,000 TPM, offered far more for 75 s: at most 1,000 tokens in any trailing 60 s."""
    with weir_dev(tmp_path, "--engine", "simulated", "--gateways", "2") as system:
        simulated = system.with_new_tenant()
        simulated.set_limits(tpm=1000)
        began = time.time()
        served = []
        index = 0
        while time.time() < began + 75:
            for reply in together(4, lambda i: simulated.chat(gateway=i, max_tokens=60)):
                index += 1
                if reply.status == 200:
                    served.append(reply.headers["x-request-id"])
                else:
                    assert reply.error["type"] == "tokens"
        rows = await simulated.sql(
            "SELECT admitted_at, prompt_tokens + output_tokens AS tokens FROM usage_records "
            "WHERE request_id = ANY($1::uuid[]) ORDER BY admitted_at",
            served,
        )
        assert len(rows) == len(served)
        for first in range(len(rows)):
            window = [
                row["tokens"]
                for row in rows[first:]
                if (row["admitted_at"] - rows[first]["admitted_at"]).total_seconds() < 60
            ]
            assert sum(window) <= 1000
        assert sum(row["tokens"] for row in rows) > 1000, "the second minute was never opened"
