from usage_examples import an_admission

from gateway.adapters.journal.open_requests import OpenRequests, end_bytes


def test_space_is_kept_until_the_end() -> None:
    """Reserved space is the sum over what is open, whatever the order of the ends."""
    requests = OpenRequests()
    first, second = an_admission(), an_admission()
    requests.add(first, boot=1, seq=1, reserved_bytes=100)
    requests.add(second, boot=1, seq=2, reserved_bytes=30)
    for _ in range(2):
        requests.end(first.request_id)
    assert (requests.reserved_bytes, requests.entries()) == (30, (second,))
    assert requests.oldest == (1, 2)
    requests.end(second.request_id)
    assert requests.entries() == ()
    assert requests.reserved_bytes == 0


def test_the_same_request_twice_is_one() -> None:
    """An admission that is repeated replaces itself."""
    requests = OpenRequests()
    admission = an_admission()
    requests.add(admission, boot=1, seq=1, reserved_bytes=100)
    requests.add(admission, boot=1, seq=2, reserved_bytes=100)
    assert requests.reserved_bytes == 100


def test_more_sequences_need_more_room() -> None:
    """Each sequence has an attempt of its own in the record."""
    one = end_bytes(an_admission(), 300)
    assert end_bytes(an_admission(sequences=8), 300) >= one + 7 * 200
