"""What runs the machine code of kernels on the host: the pool of threads and the launchers."""
