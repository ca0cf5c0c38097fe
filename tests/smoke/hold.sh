#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ten thousand Spots whose handlers hold their turns, and a client that sends until credit stops it:
# replies, beacons, ping, spotctl and messages to other Spots still pass. After the release every
# message was heard, and the pools are at their base line.
# timeout: 150
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/lib.sh"

spots=10000
stages=(hold.so room.so)
extra_config='timeouts: { create_ms = 2000; };' # also what a close gives to turns
smoke_begin
start_node
buffers=$(free_buffers)
mkfifo "$dir/go"
in_client "$build/tests/smoke/flood" "$node_ip" $spots < "$dir/go" > "$dir/flood.out" \
  2> "$dir/flood.err" &
flood_pid=$!
exec 9> "$dir/go"
must_wait_for 'the Spots' 60 grep -q "^created=$((spots + 18))\$" "$dir/flood.out"
must_wait_for 'credit to stop the flood' 60 grep -q '^blocked' "$dir/flood.out"
say "$(tail -n 1 "$dir/flood.out"); waiting: $(lane_counter messages_queued) queued," \
  "$(lane_counter messages_running) running"
[[ $(lane_counter messages_running) -ge $spots ]] || fail 'too few turns are held'
must_ping -c 5
ctl node show > /dev/null || fail 'spotctl'
run_load --clients 1 --spots 20 --seconds 1 --quiet > "$dir/load.out" || fail 'other Spots'
say "$(grep '^result' "$dir/load.out")"
expect_error DeadlineExceeded spot close sink # its turn never ends: it is ended by force
must_wait_for 'the end of sink' 10 is_missing sink
echo >&9
wait "$flood_pid" || fail "flood: $(cat "$dir/flood.err" "$dir/flood.out")"
say "$(tail -n 1 "$dir/flood.out")"
must_wait_for 'buffers' 10 has_free_buffers "$buffers"
check_conservation
stop_node
