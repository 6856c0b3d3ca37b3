"""Whether a problem is valid and an answer right, found by running programs in a sandbox."""

from populora.verifier.checks import Verifier

__all__ = ["Verifier"]
