"""Triton's own tree: the names that only programs written for Triton use. `as_triton` serves it; nothing else here knows it.

A module stands for Triton's of the same name where tilework has no such module; else its names are added to tilework's, each when it
is first asked for. `BACKENDS` are the compilers of targets with Triton's wider interface, which
`as_triton` puts in the place of ours.
"""

BACKENDS = {
    "cuda": "tilework.triton.backends.nvidia.compiler:CUDABackend",
    "hip": "tilework.triton.backends.amd.compiler:HIPBackend",
    "cpu": "tilework.triton.backends.cpu.compiler:CPUBackend",
}
