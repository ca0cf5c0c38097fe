#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ten thousand Spots whose handlers hold their turns, and a client that sends until credit stops it:
# replies, beacons, ping, spotctl and messages to other Spots still pass. After the release every
# message was heard, and the pools are at their base line. Then a handler that burns its lane for
# seconds, which is felt by nothing but that lane. Neither grows the number of threads.
# clauses: S-INFRA-1 S-INFRA-2 S-INFRA-3 S-INFRA-5
# timeout: 150
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/lib.sh"

spots=10000
stages=(hold.so room.so)
extra_config='timeouts: { create_ms = 2000; };' # also what a close gives to turns
smoke_begin
start_node
buffers=$(free_buffers)
threads_of() { find "/proc/$control_pid/task" "/proc/$dataplane_pid/task" -maxdepth 1 -mindepth 1 | wc -l; }
threads=$(threads_of)
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
[[ $(threads_of) == "$threads" ]] || fail "threads: $(threads_of) with Spots, $threads without"
[[ $(ctl -j stage show | jq '.stages[] | select(.type == "hold") | .active') -ge $spots ]] ||
  fail "stage show: $(ctl stage show)"
# A reader of the trace that stands still, while everything is traced.
ctl trace level detailed > /dev/null
ctl trace show --follow > "$dir/trace.out" &
follower=$!
ctl spot get-or-create traced room > /dev/null
must_wait_for 'the trace' 10 test -s "$dir/trace.out"
kill -STOP "$follower"
run_load --clients 1 --spots 20 --seconds 1 --quiet > "$dir/load.out" || fail 'other Spots'
say "$(grep '^result' "$dir/load.out")"
kill -CONT "$follower"
stop_pid "$follower"
ctl trace level errors > /dev/null
expect_error DeadlineExceeded spot close sink # its turn never ends: it is ended by force
must_wait_for 'the end of sink' 10 is_missing sink
echo >&9
wait "$flood_pid" || fail "flood: $(cat "$dir/flood.err" "$dir/flood.out")"
say "$(tail -n 1 "$dir/flood.out")"
must_wait_for 'buffers' 10 has_free_buffers "$buffers"
# While one lane spins, the other answers and its timeouts end, and control renews and shows.
for i in 0 1 2 3 4 5 6 7; do
  ctl spot get-or-create "spin-$i" hold > /dev/null
done
loops=$(lane_counter turns)
ctl spot send spin-0 spin > /dev/null
answered=0 late=0
for i in 1 2 3 4 5 6 7; do
  if ctl spot request "spin-$i" heard --timeout-ms 200 > /dev/null 2> "$dir/error"; then
    answered=$((answered + 1))
  else
    grep -q DeadlineExceeded "$dir/error" || fail "spin-$i: $(cat "$dir/error")"
    late=$((late + 1))
  fi
done
[[ $answered -ge 1 && $late -ge 1 ]] || fail "$answered answered and $late late beside a lane that spins"
[[ $(node_field lease) == held ]] || fail 'the lease'
[[ $(ctl -j stage show | jq '.stages[] | select(.type == "hold") | .ready') -ge 8 ]] || fail 'stage show'
must_wait_for 'the lane that spun' 10 ctl spot request spin-0 heard
[[ $(lane_counter turns) -gt $loops ]] || fail 'no turns'
check_conservation
stop_node
