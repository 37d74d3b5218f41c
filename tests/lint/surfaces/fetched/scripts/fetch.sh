fetch() {
  gh run download "${GITHUB_RUN_ID}" --name "$1" --dir fetched
}
