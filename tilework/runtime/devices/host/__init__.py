"""The host as a device: machine code on all cores, or the evaluator."""
