"""NVIDIA GPUs under the name Triton gives them; the backend itself is `tilework.backends.cuda`."""

__all__: list[str] = []
