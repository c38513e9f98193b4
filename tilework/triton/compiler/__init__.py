"""Names of Triton's compiler."""

__all__: list[str] = []
