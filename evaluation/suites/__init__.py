"""The benchmark suites, one file each; importing this package registers them."""

from populora.evaluation.suites import (  # noqa: F401
    aime,
    amc23,
    gsm8k,
    math500,
    minerva,
    olympiadbench,
)
