"""The pool of threads that runs the machine code of kernels on the host."""
