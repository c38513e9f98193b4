"""Empty, as in Triton: launchers are made by the drivers."""

__all__: list[str] = []
