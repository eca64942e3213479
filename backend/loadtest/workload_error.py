"""What is said of a workload that cannot be drawn."""


class WorkloadError(ValueError):
    """A parameter or a trace that no schedule can be drawn from; its text is one clear line."""
