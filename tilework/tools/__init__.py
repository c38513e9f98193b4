"""The command line: `tilework opt` and `tilework compile`."""
