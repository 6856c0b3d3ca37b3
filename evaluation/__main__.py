"""``python -m populora.evaluation``: evaluate a model and adapters, or grade its responses again."""

import logging
import sys

from jsonargparse import auto_cli, set_parsing_settings

from populora.errors import ConfigError, PopuLoRAError
from populora.evaluation.standalone import evaluate, regrade


def main() -> int:
    """Run ``evaluate`` or ``regrade`` and return the exit code: 2 for a wrong setting, 1 for another failure."""
    logging.basicConfig(format="%(message)s")
    logging.getLogger("populora").setLevel(logging.INFO)
    set_parsing_settings(docstring_parse_attribute_docstrings=True)
    try:
        auto_cli([evaluate, regrade], as_positional=False, prog="python -m populora.evaluation")
    except PopuLoRAError as error:
        sys.stderr.write(f"populora: {error}\n")
        return 2 if isinstance(error, ConfigError) else 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
