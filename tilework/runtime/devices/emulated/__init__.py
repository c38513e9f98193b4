"""A GPU that is not there: PTX in the emulator, on the memory of this process."""
