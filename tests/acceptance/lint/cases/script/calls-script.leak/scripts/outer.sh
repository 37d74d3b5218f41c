bash scripts/inner.sh
