"""What the pool's bill is for each tenant: a rule without a store.

`step_model` says how long a replica works for a request, `paid_time` what was paid for,
`allocation` shares the bill out, `report` puts together what people read of it.
"""
