#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Control is killed under load and back before the lease ends: no Spot stops, none is made anew, and
# every client call ends as if nothing had been.
# timeout: 90
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/lib.sh"

extra_config='route: { cache_age_ms = 60000; };'
smoke_begin
start_node
run_load --clients 2 --spots 100 --seconds 0 > "$dir/load.out" 2> "$dir/load.err" &
load_pid=$!
must_wait_for 'load' 20 grep -q 'replies=' "$dir/load.out"
before=$(ctl -j spot find room-7 | jq -r .ref.objectGeneration)

kill -KILL "$control_pid"
wait_for 5 is_gone "$control_pid"
ctl -t 1 node show > /dev/null 2>&1 && fail 'a dead control answers'
replies=$(field replies "$dir/load.out")
more_replies() { [[ $(field replies "$dir/load.out") -gt $((replies + 1000)) ]]; }
must_wait_for 'replies without control' 10 more_replies

start_control
wait_serving
after=$(ctl -j spot find room-7 | jq -r .ref.objectGeneration)
[[ $before == "$after" ]] || fail "room-7 was made anew: $before, $after"
replies=$(field replies "$dir/load.out")
must_wait_for 'replies with the new control' 10 more_replies
kill -INT "$load_pid"
wait "$load_pid" || fail "load: $(cat "$dir/load.err")"
grep '^result\|^calls' "$dir/load.out"
[[ $(field losses "$dir/load.out") == 0 ]] || fail 'a client lost its association'
[[ $(ctl -j spot create room | jq -r .state) == Created ]] || fail 'the new control does not create'
check_conservation
