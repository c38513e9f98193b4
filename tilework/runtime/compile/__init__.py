"""Source to any stage, and to a kernel that can be launched."""
