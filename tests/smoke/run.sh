#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What `./appliance run` does after it has built: both daemons in a network namespace of their own,
# real client processes in another, and at the end one summary line and the checks that it stands
# on. Everything that it makes is removed when it ends.
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/lib.sh"

usage() {
  cat << 'HELP'
usage: ./appliance run [--seconds N] [--lanes N] [--clients N] [--spots N] [--loss PERCENT]
                       [--plant drop|dup|swap] [--seed N] [--no-huge]
  --seconds N     end after N seconds; without it, Ctrl-C ends the run
  --lanes N       worker lcores of the dataplane (2)
  --clients N     client processes (4)
  --spots N       rooms they talk to (1000)
  --loss PERCENT  of the frames, each way
  --plant WHAT    let one room drop, double or swap one message: the check has to find it
  --seed N        of the random choices of the clients; printed
  --no-huge       no hugepages
HELP
}

seconds=0 clients=4 spots=1000 loss=0 plant='' seed=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --seconds) seconds=${2:-} ;;
    --lanes) lanes=${2:-} ;;
    --clients) clients=${2:-} ;;
    --spots) spots=${2:-} ;;
    --loss) loss=${2:-} ;;
    --plant) plant=${2:-} ;;
    --seed) seed=(--seed "${2:-}") ;;
    --no-huge)
      memory=no
      shift
      continue
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
  [[ $# -ge 2 ]] || { usage >&2; exit 2; }
  shift 2
done
for number in "$seconds" "$lanes" "$clients" "$spots"; do
  [[ $number =~ ^[0-9]+$ ]] || { usage >&2; exit 2; }
done
[[ $loss =~ ^[0-9]+(\.[0-9]+)?$ && $plant =~ ^(|drop|dup|swap)$ ]] || { usage >&2; exit 2; }

# Beside the rooms a small world that goes on by itself: zones with a timer at 30 Hz, which tell their
# neighbours by multicast how many walkers they have, and hand over those that leave.
side=3 walkers=18
# shellcheck disable=SC2034 # of lib.sh
stages=(room.so zone.so) extra_config='channels = [ "world" ];'

make_zones() {
  local x y n=0
  for ((x = 0; x < side; x++)); do
    for ((y = 0; y < side; y++)); do
      ctl spot get-or-create "zone-$x-$y" zone > /dev/null || return 1
    done
  done
  for ((n = 0; n < walkers; n++)); do
    x=$((n % side)) y=$((n / side % side))
    ctl spot send "zone-$x-$y" enter \
      "$((n + 1)) $((n * 53 % 1000)) $((n * 97 % 1000)) $((n % 5 - 2)) $((n % 3 - 1))" || return 1
  done
}

# shellcheck disable=SC2317 # all three: called by wait_for
# look ZONE: "ticks T walkers N east E west W north N south S", nothing when it is not there.
look() { ctl spot request "$1" look '' 2> /dev/null || true; }
# shellcheck disable=SC2317
word() { sed -n "s/.*\b$1 \([0-9]*\).*/\1/p" <<< "$2"; }

# Nobody is lost on the way, and everybody knows how many its eastern neighbour has.
# shellcheck disable=SC2317
zones_agree() {
  local x y here east sum=0
  ticks=0
  for ((x = 0; x < side; x++)); do
    for ((y = 0; y < side; y++)); do
      here=$(look "zone-$x-$y")
      [[ $(word ticks "$here") -gt 0 ]] || return 1
      ticks=$((ticks + $(word ticks "$here"))) sum=$((sum + $(word walkers "$here")))
      [[ $x -lt $((side - 1)) ]] || continue
      east=$(look "zone-$((x + 1))-$y")
      [[ $(word east "$here") == "$(word walkers "$east")" ]] || return 1
    done
  done
  [[ $sum == "$walkers" ]]
}

close_zones() {
  local x y
  for ((x = 0; x < side; x++)); do
    for ((y = 0; y < side; y++)); do
      ctl spot close "zone-$x-$y" > /dev/null || return 1
    done
  done
}

smoke_begin
say "starting control and dataplane, $lanes lanes, in a network namespace"
start_node
say "serving as $(node_field node); memory: $(memory_used)"
make_zones || fail "the zones cannot be made"
buffers=$(free_buffers)
if [[ $loss != 0 ]]; then
  lose "$loss"
  say "losing $loss % of the frames each way"
fi
[[ -z $plant ]] || say "room-0 will $plant one message"
say "$clients clients, $spots rooms; $([[ $seconds == 0 ]] && echo 'Ctrl-C ends' || echo "$seconds s")"

status=0
mkfifo "$dir/load.pipe"
(
  trap '' INT # these end when the load program does
  tee "$dir/load.out" < "$dir/load.pipe" | grep --line-buffered ' s: ' || true
) &
progress_pid=$!
trap 'true' INT # the load program ends in order, and then this script does
run_load --clients "$clients" --spots "$spots" --seconds "$seconds" "${seed[@]}" \
  ${plant:+--plant "plant=$plant"} > "$dir/load.pipe" || status=1
trap 'exit 130' INT
wait "$progress_pid" # now load.out is whole
grep -q '^result ' "$dir/load.out" || fail "the clients did not finish"
[[ $loss == 0 ]] || lose_nothing
say "$(grep '^calls ' "$dir/load.out")"

wait_for 10 zones_agree || {
  echo "fault: the zones do not agree about their walkers" >&2
  status=1
}
close_zones || status=1
check_conservation || status=1
wait_for 10 has_free_buffers "$buffers" || {
  echo "fault: $((buffers - $(free_buffers))) packet buffers did not come back" >&2
  status=1
}
ours=$(lane_counter link_retransmitted)
theirs=$(field retransmitted "$dir/load.out")
if [[ $loss != 0 && ($ours == 0 || $theirs == 0) ]]; then
  echo "fault: with $loss % lost the node sent $ours packets again, the clients $theirs" >&2
  status=1
fi

say "stopping"
ctl node shutdown > /dev/null || status=1
for pid in "$control_pid" "$dataplane_pid"; do
  wait_end "$pid" 0 || status=1
done
grep '^result ' "$dir/load.out" | sed "s/^result //; s/retransmitted=[0-9]*/retransmitted=$((ours + theirs))/; s/\$/ zones=$((side * side)) ticks=$ticks/"
exit "$status"
