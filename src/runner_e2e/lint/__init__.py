"""The workflow lint: follows confidential values through workflows to command lines and public surfaces."""
