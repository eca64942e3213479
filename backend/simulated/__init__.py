"""A simulated worker: real clock, SGLang's HTTP, no model. Its figures are labelled simulated."""
