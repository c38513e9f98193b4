"""`python -m triton.tools.link`: see `tilework/aot/link.py`."""

from tilework.aot.link import *  # noqa: F403
from tilework.aot.link import main

if __name__ == "__main__":
    main()
