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

smoke_begin
say "starting control and dataplane, $lanes lanes, in a network namespace"
start_node
say "serving as $(node_field node); memory: $(memory_used)"
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
grep '^result ' "$dir/load.out" | sed "s/^result //; s/retransmitted=[0-9]*/retransmitted=$((ours + theirs))/"
exit "$status"
