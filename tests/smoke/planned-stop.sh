#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A planned stop, by command and by signal, ends what was accepted and frees every row at once.
# timeout: 90
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/lib.sh"

smoke_begin
generation=0

# round HOW: starts the node, makes rooms, talks, and stops the node.
round() {
  start_node
  [[ $(ctl -j spot get-or-create room-1 room | jq -r .state) == Created ]] ||
    fail 'room-1 is not free'
  local now
  now=$(generation_of room-1)
  [[ $now -gt $generation ]] || fail "generation $now after $generation"
  generation=$now
  start_load --clients 2 --spots 20 --seconds 0 --survivor --no-roll
  wait_replies 100 20
  stop_by "$1"
  node_ends
  grep -q 'stopped outcome=Stopped reason=None' "$dir/control.log" || fail 'no outcome in the log'
  : > "$dir/control.log"
  stop_load
}
stop_by() {
  case $1 in
    command) ctl node shutdown > /dev/null ;;
    control) kill -TERM "$control_pid" ;;
    dataplane) kill -TERM "$dataplane_pid" ;;
  esac
}
for how in command control dataplane command; do
  say "by $how"
  round "$how"
done
