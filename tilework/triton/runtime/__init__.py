"""What Triton's runtime has and ours does not."""

__all__: list[str] = []
