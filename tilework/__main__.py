"""``python -m tilework``: the same as the `tilework` console script."""

import sys

from tilework.tools.cli import main

sys.exit(main())
