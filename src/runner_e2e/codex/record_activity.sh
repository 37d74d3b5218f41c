#!/bin/sh
# record-activity KIND TEXT: hands one line to the runner that watches this agent.
#
# Runs inside the agent's own sandbox with nothing but a POSIX shell. The descriptor beside this file names the channel
# and holds the authority of this run. One write of at most 4096 bytes reaches a FIFO whole.
# Status: 0 recorded; 2 wrong use; 3 there is no channel, or nobody may write to it.
LC_ALL=C
export LC_ALL
tab=$(printf '\t')

fail() {
  status=$1
  shift
  printf 'record-activity: %s\n' "$*" >&2
  exit "$status"
}

[ $# -eq 2 ] || fail 2 "usage: record-activity KIND TEXT"
case $1 in
  '' | *[!a-z0-9-]*) fail 2 "KIND is made of a-z, 0-9 and -" ;;
esac
case $2 in
  *[[:cntrl:]]*) fail 2 "TEXT is one line without control characters" ;;
esac

{
  read -r schema && read -r endpoint && read -r lock && read -r context && read -r limit
} 2>/dev/null <"${0%/*}/descriptor" || fail 3 "the descriptor of the channel cannot be read"
[ "$schema" = "runner-e2e.activity/v1" ] || fail 3 "the descriptor is of another version"

record="$context$tab$1$tab$2"
[ "${#record}" -lt "$limit" ] || fail 2 "the record is longer than $limit bytes"
[ -p "$endpoint" ] || fail 3 "there is no channel at $endpoint"

# The lock keeps records of several programs in the order in which they were begun; where there is no flock(1), the
# size of a record alone keeps them whole.
exec 9<"$lock" || fail 3 "the lock of the channel cannot be read"
if command -v flock >/dev/null 2>&1; then
  flock -x -w 10 9 || fail 3 "the channel is busy"
fi
# Opened for both, so that it never waits for a reader.
printf '%s\n' "$record" 1<>"$endpoint" || fail 3 "the record could not be written"
