"""Callbacks that watch and steer a co-evolution run."""
