. "$(dirname "${BASH_SOURCE[0]}")/deeper.sh"
