"""`python -m triton.tools.compile`: see `tilework/aot/compile_kernel.py`."""

from tilework.aot.compile_kernel import CompileArgs, compile_kernel, desc, main

__all__ = ["CompileArgs", "compile_kernel", "desc", "main"]

if __name__ == "__main__":
    main()
