echo "${#CASE}"
