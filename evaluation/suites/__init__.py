"""The benchmark suites, one file each; importing this package registers them."""

from populora.evaluation.suites import (  # noqa: F401
    aime,
    amc23,
    cruxeval,
    gsm8k,
    humaneval_plus,
    livecodebench,
    math500,
    mbpp_plus,
    minerva,
    olympiadbench,
)
