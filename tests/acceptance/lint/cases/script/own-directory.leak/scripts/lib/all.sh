. "$(dirname "${BASH_SOURCE[0]}")/one.sh"
