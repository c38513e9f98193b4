"""`tilework link HEADERS... -o OUT`: write one C function for kernels that were compiled ahead of time (docs/aot.md).

    tilework compile --aot add.py:add -s "*fp32:16, i32:16, 1024" -g "(n + 1023) / 1024, 1, 1" --target cpu
    tilework compile --aot add.py:add -s "*fp32, i32, 1024" -g "(n + 1023) / 1024, 1, 1" --target cpu
    tilework link add.*.h -o add            # writes add.h and add.c: add(stream, x, n, algo_id) chooses

`python -m tilework.tools.link` is the same program under Triton's name.
"""

import argparse

from tilework.aot.link import LinkerError, add_arguments, link_headers, main

__all__ = ["add_arguments", "run"]
MISTAKES = (LinkerError, OSError, UnicodeDecodeError)


def run(args: argparse.Namespace) -> int:
    """Carry out `tilework link`."""
    for path in link_headers(args.headers, args.out):
        print(path)
    return 0


if __name__ == "__main__":
    main()
