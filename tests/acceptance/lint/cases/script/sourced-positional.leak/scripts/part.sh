tool "${1:-none}"
