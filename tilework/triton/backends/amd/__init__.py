"""AMD GPUs: their name and what it says about arguments. There is no compiler for them here."""

__all__: list[str] = []
