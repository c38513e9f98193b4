"""How Triton's tree is served: what `tilework/as_triton.py` starts. Not part of that tree."""
