# Two commands do everything: `make quickstart` and `make test`.
PYTHON ?= python3
RUNTIME := .venv/runtime
DEV := .venv/dev

.PHONY: quickstart test lint types unit system environment lock clean

quickstart: ## make the environment and run the example campaign on this machine
	@$(PYTHON) scripts/make_environment.py runtime $(RUNTIME)
	@$(RUNTIME)/bin/python3 examples/quickstart.py

environment: ## the environment for development, with all tools of the tests
	@$(PYTHON) scripts/make_environment.py dev $(DEV)

system: environment ## system packages and node modules that the tests run against
	@$(DEV)/bin/python3 tests/set_up.py

lint: environment
	$(DEV)/bin/ruff check .
	$(DEV)/bin/ruff format --check .

types: environment
	$(DEV)/bin/mypy

test: system lint types ## set up everything and run every test
	$(DEV)/bin/python3 tests/run.py

lock: ## make both locks anew from pyproject.toml (needs uv)
	requirements/compile.sh

clean:
	rm -rf .venv node_modules .mypy_cache .ruff_cache .pytest_cache .runner-e2e
