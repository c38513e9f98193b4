"""The dialects of the compiler on xDSL, and cheap functions that build and change IR."""
