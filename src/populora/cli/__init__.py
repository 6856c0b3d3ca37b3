"""The command line: ``populora fit|validate --config FILE [--key value ...]``, and ``populora doctor``.

``front`` answers help, mistakes and dry runs from source alone; ``launch`` then hands over to LightningCLI.
"""

from populora.cli.front import main

__all__ = ["main"]
