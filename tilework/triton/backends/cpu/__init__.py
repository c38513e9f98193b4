"""The host, as a backend with Triton's interface."""

__all__: list[str] = []
