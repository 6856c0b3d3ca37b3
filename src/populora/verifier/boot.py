"""Starts a zygote as a script: its modules load as their package's, without what the package loads for a trainer."""

import importlib
import os
import sys
from types import ModuleType


def main() -> None:
    """Import the zygote from beside this file, and run it.

    The hooks by which threading and random look after forks cost a child more than everything else it does; it has
    no threads, and chance that is the same for every program does no harm.
    """
    vars(os)["register_at_fork"] = lambda **hooks: None
    here = os.path.dirname(os.path.abspath(__file__))
    for name, folder in (("populora", os.path.dirname(here)), ("populora.verifier", here)):
        package = ModuleType(name)
        package.__path__ = [folder]
        sys.modules[name] = package
    importlib.import_module("populora.verifier.zygote").main()


if __name__ == "__main__":
    main()
