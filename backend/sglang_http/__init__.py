"""SGLang's HTTP as a gateway uses it, over any engine that implements `engine.Engine`."""
