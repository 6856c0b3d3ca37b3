"""Grading of mathematical answers: finding them in responses, and comparing them with the right ones."""
