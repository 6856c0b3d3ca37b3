"""``python -m populora`` and the console script ``populora``."""

import sys

from populora.cli import main as run


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run())


if __name__ == "__main__":
    main()
