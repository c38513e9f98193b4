"""What Triton's language has and ours does not."""

__all__: list[str] = []
