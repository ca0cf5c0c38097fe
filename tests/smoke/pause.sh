#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Processes that stand still: the dataplane for a moment (nothing happens but a delay), control for
# longer than the lease (the dataplane fences itself, and serves again as another life).
# timeout: 120
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/lib.sh"

reclaim=on_restart
lease='lease: { renew_ms = 500; timeout_ms = 500; ttl_ms = 3000; margin_ms = 1000; };'
smoke_begin
start_node
start_load --clients 2 --spots 50 --seconds 0
wait_replies 100 20
kill -STOP "$dataplane_pid"
sleep 0.5 # shorter than the lease
kill -CONT "$dataplane_pid"
wait_replies 1000 10
stop_load

say 'control stands still for longer than the lease'
rid=$(node_field node)
start_load --clients 1 --spots 50 --seconds 0 --survivor --no-roll
kill -STOP "$control_pid"
# Past the lease nothing is admitted: the load program prints a line a second, and replies stop.
is_fenced() {
  local before
  before=$(field replies "$dir/load.out")
  sleep 3
  [[ $(field replies "$dir/load.out") == "$before" ]]
}
must_wait_for 'the dataplane to fence itself' 20 is_fenced
kill -CONT "$control_pid"
must_wait_for 'serving again' 30 is_serving
wait_replies 1000 40
stop_load
say "was $rid, is $(node_field node)"
stop_node
