"""Everything around the compiler: launching, devices, caches, autotuning. Start at `jit`."""
