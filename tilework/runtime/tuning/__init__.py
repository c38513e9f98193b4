"""The autotuner, and how calls are timed."""
