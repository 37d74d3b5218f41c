set -eu
tool --id "${#ID}"
