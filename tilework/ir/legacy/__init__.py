"""What compilers before 3.0 wrote (Triton 2.x), read as what is written today; nothing here is ever built or printed."""
