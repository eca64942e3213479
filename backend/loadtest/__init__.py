"""`weir loadtest`: an open loop against any OpenAI-compatible URL, and what it measures."""
