import msgspec
import pytest
from usage_examples import a_record, an_admission

from billing.domain.usage_record import UsageAttempt
from gateway.adapters.journal.batch import Append
from gateway.adapters.journal.entries import encode_body, encode_entry
from gateway.adapters.journal.framing import encode_frame


@pytest.mark.parametrize("sequences", [1, 4, 32])
def test_the_room_kept_holds_the_end(sequences: int) -> None:
    """A record with every field filled and an attempt a sequence fits what its admission keeps."""
    admission = an_admission(
        model="m" * 120, tenant_id="t" * 60, api_key_id="k" * 60, sequences=sequences
    )
    attempts = tuple(
        UsageAttempt(
            attempt=1,
            choice=choice,
            worker_id="worker-with-a-long-name.region.example:30000",
            started_at_ms=admission.admitted_at_ms,
            ended_at_ms=admission.admitted_at_ms + 90_000,
            outcome=a_record().outcome,
            prompt_tokens=131_072,
            output_tokens=65_536,
            provider_request_id="chatcmpl-" + "x" * 36,
        )
        for choice in range(sequences)
    )
    record = a_record(
        admission,
        reasoning_tokens=60_000,
        usage_flags=("cached_over_prompt",),
        sequences=sequences,
        attempts=attempts,
        worker_id="worker-with-a-long-name.region.example:30000",
    )
    kept = Append(admission.request_id, encode_body(admission), admission).end_bytes
    frame = encode_frame(encode_entry("ended", 2**40, encode_body(record)))
    assert len(frame) <= kept


def test_an_end_keeps_no_room() -> None:
    """Only what is still to end needs space for it."""
    record = a_record()
    end = Append(record.request_id, msgspec.msgpack.encode(record), None)
    assert (end.kind, end.end_bytes) == ("ended", 0)
