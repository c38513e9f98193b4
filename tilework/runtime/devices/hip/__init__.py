"""AMD GPUs as devices."""
