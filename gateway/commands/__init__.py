"""Administration by command line, one module a noun."""
