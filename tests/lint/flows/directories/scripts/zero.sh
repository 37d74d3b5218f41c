. "${0%/*}/percent.sh"
cd "$(dirname "$(readlink -f "$0")")/.." || exit
./tools/last.sh
