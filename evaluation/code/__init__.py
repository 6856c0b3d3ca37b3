"""Grading of programs: finding them in responses, running them in the sandbox, and comparing what they give."""
