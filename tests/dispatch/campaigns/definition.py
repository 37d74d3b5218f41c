"""The workflow that schedules run: what a preflight reads of it, and no more. Its jobs are played."""

__all__ = ["DEFINITION"]

DEFINITION = b"""\
run-name: Paid campaign ${{ inputs.nonce || github.run_id }}
on: { workflow_dispatch: { inputs: { nonce: , selection: , target: } } }
jobs: { claim: { runs-on: ubuntu-latest, steps: [{ uses: org/runner-e2e-action@v1, with: { command: claim } }] } }
"""
