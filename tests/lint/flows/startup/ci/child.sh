tool "${EXTRA:-none}" # leak
