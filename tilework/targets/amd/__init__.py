"""AMD GPUs: ``hip:gfx942``."""
