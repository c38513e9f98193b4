"""Names of Gluon for NVIDIA GPUs."""

__all__: list[str] = []
