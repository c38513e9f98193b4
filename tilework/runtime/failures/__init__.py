"""Messages about wrong calls, uncaught errors and crashes."""
