"""``tfaot`` and ``python -m tfaot``: the command line."""

from __future__ import annotations

import os
import sys

from ._binary import binary
from ._errors import Error


def main() -> None:
    """Becomes the compiler's program, with the arguments of this process."""
    try:
        program = binary()
    except Error as error:
        sys.exit(f"tfaot: {error}")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
