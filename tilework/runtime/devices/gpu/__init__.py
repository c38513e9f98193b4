"""What drivers of all GPUs share."""
