"""The dialects of the compiler on xDSL, and cheap helpers to build and change IR."""
