"""The queue of a pool: who runs next, on which worker, and how long the others will wait. Pure.

`pool.Pool` is the specification that `adapters/lua/queue_*.lua` executes (DESIGN 5; INV-8 to 10).
"""
