#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# authority.reclaim = on_restart, and control was killed before the dataplane: nobody saw its end.
# The next control finds out from the store and the machine, and the rows are freed all the same.
# timeout: 60
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/lib.sh"

reclaim=on_restart
smoke_begin
start_node
[[ $(ctl -j spot get-or-create room-2 room | jq -r .state) == Created ]] || fail room-2
rid=$(node_field node)
before=$(generation_of room-2)
stop_pid "$control_pid" KILL
stop_pid "$dataplane_pid" KILL
start_dataplane
start_control
must_wait_for 'another life' 30 is_new_life "$rid"
must_wait_for 'rows freed' 20 is_missing room-2
[[ $(ctl -j spot get-or-create room-2 room | jq -r .state) == Created ]] || fail 'room-2 again'
is_anew room-2 "$before" || fail 'not a larger generation'
stop_node
