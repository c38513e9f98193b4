"""Names of Gluon that host programs use."""

__all__: list[str] = []
