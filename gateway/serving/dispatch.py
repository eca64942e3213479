"""What an admitted request is made into: choices, each with its body for any worker."""

from gateway.domain import routing
from gateway.domain.engine_facts import engine_priority
from gateway.domain.request_id import upstream_id
from gateway.domain.tenant import Worker
from gateway.serving.asking import Asking
from gateway.serving.authenticate import request_class
from gateway.serving.choice import Choice
from gateway.serving.estimate import Estimate
from gateway.serving.ports import Fleet
from gateway.serving.upstream_body import cache_salt, upstream_body


def choices_of(
    asking: Asking, needs: Estimate, fleet: Fleet, *, cache_salt_secret: str
) -> list[Choice]:
    """The choices of a request: as many of each prompt as it asks for, in the answer's order."""
    request = asking.request
    salt = cache_salt(cache_salt_secret, asking.caller.tenant)
    asked = request_class(asking.caller, asked_batch=request.asked_batch)

    def choice(index: int) -> Choice:
        prompt = index // request.choices_per_prompt

        def body(worker: Worker, attempt: int) -> tuple[str, bytes]:
            identifier = upstream_id(asking.arrival.request_id, index, attempt)
            facts = routing.facts_of(fleet.views(request.model), worker.id)
            return identifier, upstream_body(
                request,
                worker=worker,
                prompt=prompt,
                sample=index % request.choices_per_prompt,
                upstream_id=identifier,
                max_tokens=needs.max_tokens,
                salt=salt,
                priority=engine_priority(asked, facts),
            )

        return Choice(index=index, prompt=prompt, body=body, need=needs.need)

    return [choice(index) for index in range(request.sequences)]
