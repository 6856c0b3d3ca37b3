.PHONY: quickstart test check

quickstart:  ## Co-evolve 4 teachers and 4 students on the embedded base.
	@scripts/setup
	@.venv/bin/python -m populora fit --config configs/quickstart.yaml

test:  ## Style, types, unit tests, and tests with a real engine.
	@scripts/test

check:  ## Style and types only.
	@scripts/setup
	@scripts/check
