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
run_load --clients 2 --spots 50 --seconds 0 > "$dir/load.out" 2> "$dir/load.err" &
load_pid=$!
must_wait_for 'load' 20 grep -q 'replies=' "$dir/load.out"
kill -STOP "$dataplane_pid"
sleep 0.5 # shorter than the lease
kill -CONT "$dataplane_pid"
replies=$(field replies "$dir/load.out")
more_replies() { [[ $(field replies "$dir/load.out") -gt $((replies + 1000)) ]]; }
must_wait_for 'replies after the pause' 10 more_replies
kill -INT "$load_pid"
wait "$load_pid" || fail "load: $(cat "$dir/load.err")"
grep '^result' "$dir/load.out"

say 'control stands still for longer than the lease'
rid=$(node_field node)
kill -STOP "$control_pid"
run_load --clients 1 --spots 50 --seconds 0 --survivor --no-roll > "$dir/load.out" \
  2> "$dir/load.err" &
load_pid=$!
sleep 4 # the lease, and its margin
kill -CONT "$control_pid"
must_wait_for 'serving again' 30 is_serving
must_wait_for 'the clients live on' 40 grep -q 'replies=[1-9]' "$dir/load.out"
kill -INT "$load_pid"
wait "$load_pid" || fail "load: $(cat "$dir/load.err" "$dir/load.out")"
grep '^calls' "$dir/load.out"
say "was $rid, is $(node_field node)"
