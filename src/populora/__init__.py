"""Co-evolve populations of LoRA teachers and students on one frozen language model (arXiv 2605.16727)."""

__version__ = "0.1.0"
