"""The code that drivers of all GPUs share."""
