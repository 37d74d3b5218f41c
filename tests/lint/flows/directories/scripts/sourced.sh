. "$(dirname "$BASH_SOURCE")/inner/sourced.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
