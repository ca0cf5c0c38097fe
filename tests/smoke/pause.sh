#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Processes that stand still: the dataplane for a moment (nothing happens but a delay), control for
# longer than the lease: the dataplane fences itself; with control back, the same life goes on under
# a new lease, with the same Spots.
# timeout: 120
# clauses: A-LEASE-12 A-LEASE-9
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
generation=$(generation_of room-7)
start_load --clients 1 --spots 50 --seconds 0 --survivor --no-roll
wait_replies 100 20
kill -STOP "$control_pid"
lines=$(wc -l < "$dir/load.out")
# The load program prints a line a second; past the lease nothing is admitted, and replies stop.
replies_since() { sed "1,${lines}d" "$dir/load.out" | grep -o 'replies=[0-9]*'; }
is_fenced() {
  is_gone "$load_pid" || [[ $(replies_since | tail -n 3 | uniq -c) =~ ^\ *3\  ]]
}
must_wait_for 'the dataplane to fence itself' 20 is_fenced
is_running "$load_pid" || fail "the load program ended: $(cat "$dir/load.err" "$dir/load.out")"
# Renewed at most just before the stop: the deadline is less than 2 s away, and each line is 1 s.
[[ $(replies_since | uniq | wc -l) -le 4 ]] || fail "fenced too late: $(replies_since)"
kill -CONT "$control_pid"
must_wait_for 'serving again' 30 is_serving
wait_replies 1000 40
stop_load
grep -q 'the lease is lost' "$dir/control.log" || fail 'control did not notice'
[[ $(node_field node) == "$rid" ]] || fail "another life: was $rid"
[[ $(generation_of room-7) == "$generation" ]] || fail 'room-7 was made anew'
check_conservation
stop_node
