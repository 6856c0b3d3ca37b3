"""Evaluation of bases and populations, usable without training."""
