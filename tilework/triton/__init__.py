"""The names of Triton that tilework itself does not use. `as_triton` serves them; nothing else imports this package.

`names.py` is the table of Triton's modules and names, `finder.py` serves it, and the other files hold the code that
only programs written for Triton call. `BACKENDS` are the compilers of targets with Triton's wider interface, which
`as_triton` installs instead of tilework's.
"""

BACKENDS = {
    "cuda": "tilework.triton.backends:CUDABackend",
    "hip": "tilework.triton.backends:HIPBackend",
    "cpu": "tilework.triton.backends:CPUBackend",
}
