#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A run without an end is ended by Ctrl-C, which every process of the terminal gets: in order, and
# with the summary of a clean run.
# timeout: 60
set -euo pipefail
here=$(dirname "$0")
out=$(mktemp)
run_pid=''
trap 'rm -f "$out"; [[ -z $run_pid ]] || kill -TERM "$run_pid"' EXIT
# What is started in the background ignores SIGINT unless told.
setsid env --default-signal=INT "$here/run.sh" --spots 50 --no-huge > "$out" 2>&1 &
run_pid=$!
until=$((SECONDS + 40))
until grep -q '^ *2 s: ' "$out"; do
  [[ $SECONDS -lt $until && -d /proc/$run_pid ]] || { cat "$out"; exit 1; }
  sleep 0.05
done
kill -INT -- "-$run_pid"
status=0
wait "$run_pid" || status=$?
run_pid=''
tail -n 3 "$out"
[[ $status == 0 ]] || { echo "FAIL: exit $status"; cat "$out"; exit 1; }
[[ $(tail -n 1 "$out") =~ lost=0\ duplicated=0\ reordered=0 ]] || { echo 'FAIL: no result'; exit 1; }
