# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# For smoke tests: a machine of two network namespaces, the daemons in one, clients in the other.
# A test sources this file, calls `smoke_begin`, and exits 0 or 1; everything that was made here is
# removed when it exits. Nothing is stopped by name, only by process id.
#
# Set before smoke_begin to change them: lanes, memory (auto, no), extra_config, stages (modules),
# stage_type, reclaim (manual, on_restart), lease (a config group), mbufs, memory_mb.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${SPL_BUILD:-$root/build}
load=$build/tests/smoke/load
node_ip=10.77.0.1
client_ip=10.77.0.2
lanes=2
memory=auto
memory_mb=512
mbufs=16384
stages=(room.so)
stage_type=room
reclaim=manual
lease=''
extra_config=''
dir=''
node_ns='' client_ns='' node_if='' client_if=''
control_pid='' dataplane_pid=''
verbose=${SMOKE_VERBOSE:-yes}

say() { [[ $verbose == no ]] || printf '== %s\n' "$*"; }
fail() {
  printf 'FAIL: %s\n' "$*" >&2
  exit 1
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
  local until=$((SECONDS + $1))
  shift
  while ! "$@" > /dev/null 2>&1; do
    [[ $SECONDS -lt $until ]] || return 1
    sleep 0.05
  done
}

must_wait_for() {
  local what=$1
  shift
  wait_for "$@" || fail "$what: not within $1 s"
}

is_running() { [[ -n ${1:-} && -d /proc/$1 && $(ps -o stat= -p "$1" 2> /dev/null) != Z* ]]; }
is_gone() { ! is_running "$1"; }

# stop_pid PID [SIGNAL]: sends it, and waits until the process is gone.
stop_pid() {
  is_running "$1" || return 0
  kill -"${2:-TERM}" "$1" 2> /dev/null || true
  wait_for 20 is_gone "$1" || kill -KILL "$1" 2> /dev/null || true
  wait "$1" 2> /dev/null || true
}

# wait_end PID STATUS: waits for the end of a child that was told to end; its exit status has to be
# that one.
wait_end() {
  local status=0
  wait_for 20 is_gone "$1" || {
    echo "fault: process $1 did not end" >&2
    return 1
  }
  wait "$1" || status=$?
  [[ $status == "$2" ]] || {
    echo "fault: process $1 ended with exit status $status instead of $2" >&2
    return 1
  }
}
must_end() { wait_end "$@" || fail "the end of process $1"; }

in_node() { ip netns exec "$node_ns" "$@"; }
in_client() { ip netns exec "$client_ns" "$@"; }

make_net() {
  node_ns=spn$$ client_ns=spc$$ node_if=spn$$v client_if=spc$$v
  ip netns add "$node_ns"
  ip netns add "$client_ns"
  ip -n "$node_ns" link add "$node_if" type veth peer name "$client_if" netns "$client_ns"
  in_node sysctl -qw net.ipv6.conf.all.disable_ipv6=1
  in_client sysctl -qw net.ipv6.conf.all.disable_ipv6=1
  # The far end reads frames from the wire: the kernel has to fill in checksums and sizes.
  in_node ethtool -K "$node_if" tx off rx off gro off gso off tso off > /dev/null 2>&1
  in_client ethtool -K "$client_if" tx off gro off gso off tso off > /dev/null 2>&1
  ip -n "$node_ns" link set lo up
  ip -n "$client_ns" link set lo up
  ip -n "$node_ns" link set "$node_if" txqueuelen 10000 up
  ip -n "$client_ns" link set "$client_if" txqueuelen 10000 up
  ip -n "$client_ns" addr add "$client_ip/24" dev "$client_if"
  in_client sysctl -qw net.core.rmem_max=8388608 net.core.wmem_max=8388608 2> /dev/null || true
}

# lose PERCENT: of the frames each way. Both hooks are on the client's device: what an af_packet port
# receives was taken before the node's own ingress hook.
lose() {
  local below
  below=$(awk -v p="$1" 'BEGIN { printf "%d", p * 100 }')
  in_client nft -f - << NFT
table netdev smoke {
  chain in {
    type filter hook ingress device "$client_if" priority 0;
    numgen random mod 10000 < $below counter drop;
  }
  chain out {
    type filter hook egress device "$client_if" priority 0;
    numgen random mod 10000 < $below counter drop;
  }
}
NFT
}

lose_nothing() {
  in_client nft delete table netdev smoke
}

stage_list() {
  local module first=yes
  for module in "${stages[@]}"; do
    [[ $first == yes ]] || printf ', '
    printf '{ module = "%s"; }' "$module"
    first=no
  done
}

write_config() {
  cat > "$dir/spotlane.cfg" << CFG
security = "none";
stage_dirs = [ "$build/examples", "$build/tests/smoke" ];
ports: ( {
	name = "p0";
	device = "${device:-net_af_packet0,iface=$node_if,framecnt=2048,blocksz=1048576,framesz=2048}";
	ip = "$node_ip";
} );
stages: ( $(stage_list) );
node: { name_prefix = "smoke"; drain_ms = 10000; };
dataplane: {
	lanes = $lanes;
	hugepages = "$memory";
	memory_mb = $memory_mb;
	mbufs = $mbufs;
};
authority: { reclaim = "$reclaim"; };
store: { path = "$dir/store.db"; };
control: {
	socket = "$dir/control.sock";
	private_dir = "$dir/private";
};
$lease
$extra_config
CFG
  chmod 600 "$dir/spotlane.cfg"
}

# In sessions of their own: the terminal's Ctrl-C is not for them.
start_control() {
  setsid ip netns exec "$node_ns" "$build/control/spotlane-control" -c \
    "$dir/spotlane.cfg" >> "$dir/control.log" 2>&1 &
  control_pid=$!
}

start_dataplane() {
  setsid ip netns exec "$node_ns" "$build/dataplane/spotlane-dataplane" -d \
    "$dir/private" >> "$dir/dataplane.log" 2>&1 &
  dataplane_pid=$!
}

ctl() { "$build/control/cli/spotctl" -s "$dir/control.sock" "$@"; }

# node_field NAME: of `node show`.
node_field() { ctl -j node show | jq -r --arg f "$1" '.[$f] // empty'; }
is_state() { [[ $(node_field state 2> /dev/null) == "$1" ]]; }
is_serving() { is_state Serving; }

wait_serving() {
  local until=$((SECONDS + 30))
  while ! is_serving; do
    is_running "$control_pid" || { show_logs; fail "control ended"; }
    is_running "$dataplane_pid" || { show_logs; fail "the dataplane ended"; }
    [[ $SECONDS -lt $until ]] || { show_logs; fail "not serving within 30 s"; }
    sleep 0.05
  done
}

start_node() {
  start_control
  start_dataplane
  wait_serving
}

# node_ends: both daemons were told to stop, and end well.
node_ends() {
  must_end "$control_pid" 0
  must_end "$dataplane_pid" 0
}

stop_node() {
  ctl node shutdown > /dev/null || fail 'node shutdown'
  node_ends
}

show_logs() {
  local log
  for log in control dataplane; do
    [[ -s $dir/$log.log ]] || continue
    printf -- '-- %s.log\n' "$log" >&2
    tail -n 30 "$dir/$log.log" >&2
  done
}

# What else a test has to undo.
on_end() { :; }

smoke_end() {
  local status=$?
  trap - EXIT ERR
  set +e
  [[ $status == 0 ]] || show_logs
  local pid
  for pid in $(jobs -p); do
    kill -CONT "$pid" 2> /dev/null
    kill -KILL "$pid" 2> /dev/null
  done
  wait 2> /dev/null
  on_end
  [[ -z $node_ns ]] || ip netns del "$node_ns" 2> /dev/null
  [[ -z $client_ns ]] || ip netns del "$client_ns" 2> /dev/null
  [[ -z $dir ]] || rm -rf "$dir"
  exit "$status"
}

# smoke_dir: $dir, which is removed at the end, with what the daemons share in it.
smoke_dir() {
  dir=$(mktemp -d "${TMPDIR:-/tmp}/spotlane.XXXXXX")
  trap smoke_end EXIT
  set -E
  trap 'printf "%s: line %s failed\n" "$0" "$LINENO" >&2' ERR
  trap 'exit 130' INT TERM HUP
  mkdir -m 750 "$dir/private"
}

smoke_begin() {
  local program
  for program in control/spotlane-control dataplane/spotlane-dataplane control/cli/spotctl \
    tests/smoke/load; do
    [[ -x $build/$program ]] || fail "$build/$program is not built"
  done
  smoke_dir
  make_net
  write_config
}

# start_load ARGUMENTS...: in the background as $load_pid, output in load.out and load.err.
load_pid=''
start_load() {
  ip netns exec "$client_ns" "$load" --address "$node_ip" --type "$stage_type" "$@" \
    > "$dir/load.out" 2> "$dir/load.err" &
  load_pid=$!
  must_wait_for 'the load program' 20 grep -q created "$dir/load.out"
}

# stop_load: ends it in order; it has to end well.
stop_load() {
  kill -TERM "$load_pid" 2> /dev/null || true
  wait "$load_pid" || fail "load: $(cat "$dir/load.err" "$dir/load.out")"
  load_pid=''
  say "$(grep '^result' "$dir/load.out")"
  say "$(grep '^calls' "$dir/load.out")"
}

# wait_replies N SECONDS: until the load program got N more replies.
has_replies() { [[ $(field replies "$dir/load.out") -ge $1 ]]; }
wait_replies() {
  local before
  before=$(field replies "$dir/load.out")
  must_wait_for "$1 more replies" "$2" has_replies $((${before:-0} + $1))
}

run_load() { in_client "$load" --address "$node_ip" --type "$stage_type" "$@"; }

# generation_of ID: fails when there is no Ready Spot of it.
generation_of() { ctl -j spot find "$1" | jq -er '.ref.objectGeneration // empty'; }
is_missing() { [[ $(ctl spot find "$1" 2>&1) == *'no Ready Spot'* ]]; }
is_unavailable() { [[ $(ctl spot find "$1" 2>&1) == *Unavailable* ]]; }
# is_anew ID GENERATION: the Spot is there and of a larger generation.
is_anew() { [[ $(generation_of "$1") -gt $2 ]]; }
# is_new_life RID: the node serves, and under another RID.
is_new_life() { is_serving && [[ $(node_field node) != "$1" ]]; }

# field NAME FILE: the value of NAME=value in the last line of FILE that has it.
field() { { grep -o "\b$1=[0-9]*" "$2" || true; } | tail -n 1 | cut -d = -f 2; }

# must_ping OPTIONS...: every echo request is answered.
must_ping() {
  local out
  out=$(in_client ping -q -i 0.05 -W 2 "$@" "$node_ip") || fail "ping $*: $out"
  [[ $out == *' 0% packet loss'* ]] || fail "ping $*: $out"
}

# expect_error KIND ARGUMENTS...: spotctl ends with 1 and names the kind.
expect_error() {
  local kind=$1 status=0
  shift
  ctl "$@" > "$dir/error" 2>&1 || status=$?
  [[ $status == 1 ]] || fail "spotctl $*: exit $status, not 1: $(cat "$dir/error")"
  grep -q "$kind" "$dir/error" || fail "spotctl $*: no $kind: $(cat "$dir/error")"
}

# refused STATUS WORD COMMAND...: the command ends with STATUS and says WORD.
refused() {
  local want=$1 word=$2 status=0
  shift 2
  timeout 20 "$@" > "$dir/out" 2>&1 || status=$?
  [[ $status == "$want" ]] || fail "$*: exit $status, not $want: $(tail -n 3 "$dir/out")"
  grep -qi -- "$word" "$dir/out" || fail "$*: no '$word' in: $(tail -n 3 "$dir/out")"
}

stats() { ctl -j stats show "$@"; }

# lane_counter NAME: the sum over all lanes and the agent.
lane_counter() {
  local n
  n=$(stats lanes | jq -r --arg n "$1" '.rows[] | select(.counter == $n) | .total')
  [[ $n =~ ^[0-9]+$ ]] || fail "no counter $1"
  echo "$n"
}

# laws: prints each law of include/spotlane/reasons.h that does not hold, with its numbers. Fails when
# the counters cannot be read or are not all there.
laws() {
  local lanes drops
  lanes=$(stats lanes) && drops=$(stats drops) || return 1
  jq -rn --argjson lanes "$lanes" --argjson drops "$drops" '
    def sum($what; $c): if . == [] then error("no \($what)") else map(.[$c]) | add end;
    def value($n; $c): [$lanes.rows[] | select(.counter == $n)] | sum($n; $c);
    ($lanes.columns | map(.name) | map(select(. != "counter" and . != "unit"))) as $columns
    | if $columns == [] then error("no lanes") else $columns[] end
    | . as $c
    | ([$lanes.rows[] | select(.counter | startswith("used_"))] | sum("used_ rows"; $c)) as $used
    | ([$drops.rows[] | select(.of == "frame")] | sum("drops of frames"; $c)) as $dropped
    | ([$drops.rows[] | select(.of == "message")] | sum("drops of messages"; $c)) as $failed
    | value("frames_rx"; $c) as $rx
    | value("messages_accepted"; $c) as $accepted
    | (value("messages_finished"; $c) + $failed + value("messages_queued"; $c)
       + value("messages_running"; $c)) as $ended
    | (if $rx != $used + $dropped
       then "\($c): \($rx) frames received, \($used) used + \($dropped) dropped" else empty end),
      (if $accepted != $ended
       then "\($c): \($accepted) messages accepted, \($ended) finished, failed or waiting"
       else empty end)'
}
laws_hold() {
  local broken
  broken=$(laws) && [[ -z $broken ]]
}

# Frames that come between two reads look like a broken law, so it may take a moment of rest.
check_conservation() {
  wait_for 10 laws_hold || {
    echo "fault: frames or messages do not add up" >&2
    laws >&2 || echo "fault: the counters cannot be read" >&2
    return 1
  }
}

free_buffers() { lane_counter buffers_free; }
has_free_buffers() { [[ $(free_buffers) -ge $1 ]]; }
memory_used() {
  if grep -q 'dataplane is ready.*hugepages=1' "$dir/control.log"; then
    echo 'hugepages'
  else
    echo 'no hugepages'
  fi
}
