#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The dataplane is killed under load and started again: every client call ends once; the ids of the
# dead life answer Unavailable until they are reclaimed; then GetOrCreate makes them anew with a
# larger generation, each by one factory run.
# timeout: 120
# clauses: A-FAIL-3 A-FAIL-10
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/lib.sh"

smoke_begin
start_node
start_load --clients 2 --spots 50 --seconds 0 --survivor --no-roll
wait_replies 100 20
rid=$(node_field node)
before=$(generation_of room-7)

stop_pid "$dataplane_pid" KILL
is_down() { [[ $(node_field dataplane) == down ]]; }
must_wait_for 'control sees it' 10 is_down
start_dataplane
must_wait_for 'another life' 30 is_new_life "$rid"

expect_error Unavailable spot request room-7 roll
expect_error Unavailable spot get-or-create room-7 room
ctl -j spot reclaim --node "$rid" > "$dir/out" || fail "reclaim: $(cat "$dir/out")"
[[ $(jq .reclaimed "$dir/out") -ge 50 ]] || fail "reclaimed: $(cat "$dir/out")"
must_wait_for 'rooms made anew by the clients' 40 is_anew room-7 "$before"
stop_load
[[ $(field open "$dir/load.out") == 0 ]] || fail 'calls that never ended'
[[ $(field losses "$dir/load.out") -ge 2 ]] || fail 'the clients did not notice'
check_conservation
stop_node
