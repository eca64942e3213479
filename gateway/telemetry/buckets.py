"""The bounds of histograms, in seconds and tokens.

First token, time per token, duration and tokens follow OpenTelemetry's advice for servers of
generative models; three things are added: the default targets (800 ms and 60 s to the first token,
40 ms a token), so that the share within a target is counted and not interpolated; bounds on both
sides of what a GPU does (10 to 50 ms a token); and the hours that batch may wait and a stream may
take, where the advice ends at 10 s and 82 s.
"""

FIRST_TOKEN_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 0.8, 1.0, 2.5, 5.0, 7.5, 10.0,
    30.0, 60.0, 120.0, 300.0, 600.0,
)  # fmt: skip
TOKEN_S = (
    0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75,
    1.0, 2.5,
)  # fmt: skip
GAP_S = (0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 30.0, 60.0, 120.0)
"""The longest gap of a stream; 120 s is where a stall ends it."""
DURATION_S = (
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84,
    327.68, 655.36, 1310.72, 3600.0,
)  # fmt: skip
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)
WAIT_S = (
    0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 60.0, 120.0, 300.0,
    600.0,
)  # fmt: skip
"""Of waiting for a place; 0.8 s is when a hosted provider is asked, 600 s when batch gives up."""
DECISION_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.6, 1.2)
"""Of a decision; 0.1 s is the time-out of one call."""
COMMIT_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Of what a request waits for on a disk or in the store of leases."""
BATCH_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0)
"""Of one transaction of the shipper; 15 s is its time-out."""
REBUILD_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2)
LAG_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Of how late the event loop comes to what was due."""
