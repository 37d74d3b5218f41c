#!/bin/sh
set -eu
gh run download "$GITHUB_RUN_ID" --dir all
