"""Read the output of other processes from a file.

    with tempfile.TemporaryFile() as file:
        subprocess.run(command, stdout=file)
        text = bytes_in(file).decode()

A process can leave others behind that still print. They share the position in the file with its reader: after
``file.seek(0)`` they would write over its beginning, and ``file.read()`` would begin behind what they wrote.
"""

import os
from typing import IO, Any


def bytes_in(file: IO[Any]) -> bytes:
    """Return the contents of an open file; its position is not used."""
    if not hasattr(os, "pread"):  # Windows has no read at a position
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        with open(file.fileno(), "rb", closefd=False) as whole:
            return whole.read()
    found = b""
    while piece := os.pread(file.fileno(), 1 << 20, len(found)):
        found += piece
    return found
