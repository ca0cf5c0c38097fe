#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Both daemons killed under load, in both orders, and started again in both orders: every call ends
# once, the rows of the dead life can be reclaimed, and the clients go on.
# timeout: 150
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/lib.sh"

lease='lease: { renew_ms = 500; timeout_ms = 500; ttl_ms = 3000; margin_ms = 1000; };'
smoke_begin
start_node

# round FIRST SECOND: kills FIRST, then SECOND; starts SECOND, then FIRST.
round() {
  local rid first second
  rid=$(node_field node)
  start_load --clients 2 --spots 30 --seconds 0 --survivor --no-roll
  wait_replies 100 20
  first=${1}_pid second=${2}_pid
  stop_pid "${!first}" KILL
  stop_pid "${!second}" KILL
  "start_$2"
  "start_$1"
  wait_serving
  must_wait_for 'another life' 20 is_new_life "$rid"
  must_wait_for 'the dead lease to end' 20 is_unavailable room-3
  ctl -j spot reclaim --node "$rid" > "$dir/out" || fail "reclaim: $(cat "$dir/out")"
  [[ $(jq .reclaimed "$dir/out") -ge 30 ]] || fail "reclaimed: $(cat "$dir/out")"
  wait_replies 1000 40
  stop_load
}
say 'control first'
round control dataplane
say 'dataplane first'
round dataplane control
check_conservation
stop_node
