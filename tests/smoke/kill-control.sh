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
start_load --clients 2 --spots 100 --seconds 0
wait_replies 100 20
before=$(generation_of room-7)

stop_pid "$control_pid" KILL
ctl -t 1 node show > /dev/null 2>&1 && fail 'a dead control answers'
wait_replies 1000 10

start_control
wait_serving
after=$(generation_of room-7)
[[ $before == "$after" ]] || fail "room-7 was made anew: $before, $after"
wait_replies 1000 10
stop_load
[[ $(field losses "$dir/load.out") == 0 ]] || fail 'a client lost its association'
[[ $(ctl -j spot create room | jq -r .state) == Created ]] || fail 'the new control does not create'
check_conservation
stop_node
