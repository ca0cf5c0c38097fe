#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Both daemons killed under load, in both orders, and started again in both orders.
# timeout: 150
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/lib.sh"

reclaim=on_restart
smoke_begin
start_node

# round FIRST SECOND: kills FIRST, then SECOND; starts SECOND, then FIRST.
round() {
  local rid first second
  rid=$(node_field node)
  run_load --clients 2 --spots 30 --seconds 0 --survivor --no-roll > "$dir/load.out" \
    2> "$dir/load.err" &
  load_pid=$!
  must_wait_for 'load' 20 grep -q 'replies=' "$dir/load.out"
  first=${1}_pid second=${2}_pid
  kill -KILL "${!first}"
  wait_for 5 is_gone "${!first}"
  kill -KILL "${!second}"
  wait_for 5 is_gone "${!second}"
  "start_$2"
  "start_$1"
  wait_serving
  must_wait_for 'another life' 20 is_new_life "$rid"
  replies=$(field replies "$dir/load.out")
  more_replies() { [[ $(field replies "$dir/load.out") -gt $((replies + 100)) ]]; }
  must_wait_for 'replies again' 40 more_replies
  kill -INT "$load_pid"
  wait "$load_pid" || fail "load: $(cat "$dir/load.err" "$dir/load.out")"
  grep '^calls' "$dir/load.out"
}
say 'control first'
round control dataplane
say 'dataplane first'
round dataplane control
check_conservation
