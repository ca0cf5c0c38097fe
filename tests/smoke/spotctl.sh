#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# spotctl against live daemons: every command once in text and in JSON, and each exit status.
# timeout: 60
# clauses: S-ACT-1 S-ACT-5 S-OBS-6 S-IDLE-3
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/lib.sh"

stages=(room.so counter.so cart.so)
extra_config='timeouts: { instance_idle_ms = 400; };'
smoke_begin
# status WANT ARGUMENTS...: spotctl ends with WANT; what it printed is in $dir/out.
status() {
  local want=$1 got=0
  shift
  ctl "$@" > "$dir/out" 2>&1 || got=$?
  [[ $got == "$want" ]] || fail "spotctl $*: exit $got, not $want: $(cat "$dir/out")"
}
status 3 node show
status 2 node dance
status 2 --no-such-option
start_node
status 0 node show
status 0 -j node show
status 0 -j status show
[[ $(jq -r '"\(.state)/\(.ready)/\(.inbound_pending == .inbound_queued + .inbound_active)"' "$dir/out") == Serving/true/true ]] ||
  fail "status: $(cat "$dir/out")"
ctl status show --follow > "$dir/status.out" 2> /dev/null & # until the daemon is gone
follower=$!
must_wait_for 'the first status' 10 grep -q Serving "$dir/status.out"
[[ $(jq -r .state "$dir/out") == Serving ]] || fail 'state'
status 0 -j spot get-or-create lobby room
[[ $(jq -r .state "$dir/out") == Created ]] || fail 'created'
jq .ref "$dir/out" > "$dir/ref"
status 0 -j spot get-or-create lobby room
[[ $(jq -r .state "$dir/out") == Existing ]] || fail 'existing'
status 1 spot get-or-create lobby counter
status 1 -j spot create no-such-type
status 0 -j spot find lobby
[[ $(jq -c .ref "$dir/out") == $(jq -c . "$dir/ref") ]] || fail 'find'
status 1 spot find nobody
status 0 spot list
grep -q lobby "$dir/out" || fail 'list'
status 1 spot request nobody roll
grep -q NotFound "$dir/out" || fail "not NotFound: $(cat "$dir/out")"
status 1 spot request lobby no-such-packet
status 0 -j spot request lobby roll
status 1 -j spot send nobody say --payload x
status 0 spot send lobby say --payload x # too short: the room fails, and nobody is told but the log
must_wait_for 'a line about the handler that failed' 10 \
  grep -q 'handler failed type=room packet=say kind=ProtocolError' "$dir/dataplane.log"
# A cart starts with its first message, whoever asks at once, and goes when nobody uses it.
status 1 spot request cart-1 list
grep -q NotFound "$dir/out" || fail 'a message without the type started a cart'
for i in 1 2 3 4; do
  ctl spot send cart-1 add --payload oolong --instance cart > /dev/null 2> "$dir/send.$i" &
  senders[i]=$!
done
for i in 1 2 3 4; do
  wait "${senders[i]}" || fail "sender $i: $(cat "$dir/send.$i")"
done
status 0 -j spot request cart-1 list --instance cart
[[ $(jq -r .reply "$dir/out") == '4 oolong' ]] || fail "the cart: $(cat "$dir/out")"
cart=$(generation_of cart-1)
must_wait_for 'the cart to be evicted' 10 is_missing cart-1
status 1 spot request cart-1 list
status 0 -j spot request cart-1 list --instance cart
[[ -z $(jq -r .reply "$dir/out") ]] || fail 'the cart is not empty'
[[ $(generation_of cart-1) -gt $cart ]] || fail 'the cart is not a new one'
status 1 spot request lobby list --instance cart
grep -q TypeMismatch "$dir/out" || fail "not TypeMismatch: $(cat "$dir/out")"
status 1 spot request cart-2 list --instance room
grep -q NotFound "$dir/out" || fail "not NotFound: $(cat "$dir/out")"
status 1 spot get-or-create cart-2 cart
grep -q InvalidOperation "$dir/out" || fail "not InvalidOperation: $(cat "$dir/out")"
entry_spot=$(node_field entry_spot) lifecycle=$(node_field lifecycle)
status 0 -j spot find "$entry_spot"
[[ $(jq -r .kind "$dir/out") == entry ]] || fail 'the Entry Spot'
status 1 spot request "$(node_field entry_spot)" anything
grep -q 'not handled (NotFound)' "$dir/out" || fail "the Entry Spot: $(cat "$dir/out")"
for view in drops lanes ports links; do
  status 0 stats show $view
  status 0 -j stats show $view
  [[ $(jq -r .view "$dir/out") == "$view" ]] || fail "$view"
done
# stage TYPE FIELD: of `stage show`.
stage() { ctl -j stage show | jq -r --arg t "$1" --arg f "$2" '.stages[] | select(.type == $t) | .[$f]'; }
status 0 stage show
must_wait_for 'the room in stage show' 10 test "$(stage room ready)" == 1
[[ $(stage room created)/$(stage room queued)/$(stage room shutting_down) == 1/0/false ]] ||
  fail "stage show: $(ctl stage show)"
! ctl stage show | grep -q lobby || fail 'stage show names a Spot'
# Of what the node has been told, nothing is in a metric: ids, packet names, payloads, its own RID.
status 0 metrics show
grep -q '^spotlane.spot.count{mesh_name="default",spot_kind="user"} 1$' "$dir/out" || fail 'spot.count'
grep -q '^spotlane.host.state{state="serving"} 1$' "$dir/out" || fail 'host.state'
for word in lobby roll say nobody "$(node_field node)" 10.77 spot_id flow_id correlation topic; do
  ! grep -q -- "$word" "$dir/out" || fail "'$word' in the metrics: $(grep -- "$word" "$dir/out")"
done
status 0 trace level detailed
status 1 trace sample 2
status 0 trace sample 1.0
status 0 -j spot request lobby roll
status 0 trace show
grep -q 'record=spotlane.dispatch_error .*reason=handler_exception .*spot_id=lobby packet=say' "$dir/out" ||
  fail "no failure in the trace: $(cat "$dir/out")"
flow=$(grep 'phase=dispatched .*packet=roll' "$dir/out" | grep -o 'flow_id=[0-9a-f-]*')
[[ $(grep -c "phase=completed .*$flow" "$dir/out") == 1 ]] || fail "no end of $flow"
status 0 trace level errors
status 0 -t 1 trace show --follow
grep -q 'spotlane.runtime.mesh_node.state_changed mesh=default state=Serving' "$dir/control.log" ||
  fail 'no change of state in the log'
status 1 spot reclaim --node "$(node_field node)"
status 0 -j spot close "$(cat "$dir/ref")"
[[ $(jq .closed "$dir/out") == true ]] || fail 'closed'
[[ $(stage room closed)/$(stage room ready) == 1/0 ]] || fail "after the close: $(ctl stage show)"
status 1 -j spot close "$(cat "$dir/ref")"
grep -q '"closed": *false' "$dir/out" || fail 'closed twice'
status 1 spot request lobby roll
# A client comes and goes.
run_load --clients 1 --spots 5 --seconds 1 --quiet > "$dir/load.out" || fail "load: $(cat "$dir/load.out")"
peer='spotlane.runtime.mesh_node.peer_changed mesh=default rid=[^ ]* state='
grep -q "${peer}ready lanes=1" "$dir/dataplane.log" || fail 'no peer in the log'
must_wait_for 'the end of the peer in the log' 10 \
  grep -q "${peer}not_connected reason=closed" "$dir/dataplane.log"
kill -STOP "$control_pid"
status 4 -t 1 node show
kill -CONT "$control_pid"
check_conservation
status 0 node shutdown
node_ends
wait "$follower" || true
grep -q "state *Draining" "$dir/status.out" || fail "status --follow: $(cat "$dir/status.out")"
status 3 node show
! laws_hold 2> /dev/null || fail 'the laws hold without a daemon'
# Whatever was done to them, no Spot, payload or generation is in a log.
generation=$(jq -r .objectGeneration "$dir/ref")
for word in lobby nobody cart- room- oolong "$lifecycle" "$(printf %x "$lifecycle")" "$entry_spot" \
  "generation=$generation" lease_gen; do
  ! grep -e "$word" "$dir/control.log" "$dir/dataplane.log" || fail "'$word' is in the log"
done
