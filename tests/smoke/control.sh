#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The control daemon as a process, with the fake dataplane: a second start, stale and foreign socket
# files, signals, exit status, kill -9 of either process, stores that cannot be used.
# timeout: 120
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${SPL_BUILD:-$root/build}
control=$build/control/spotlane-control
fake=$build/tests/lib/fake_dataplane
dir=$(mktemp -d "${TMPDIR:-/tmp}/spotlane.XXXXXX")
mkdir -m 750 "$dir/private"
pids=()

finish() {
  local status=$?
  trap - EXIT
  [[ $status == 0 ]] || tail -n 40 "$dir"/*.log >&2
  for pid in "${pids[@]}"; do
    kill -CONT "$pid" 2> /dev/null || true
    kill -KILL "$pid" 2> /dev/null || true
  done
  mountpoint -q "$dir/small" && umount "$dir/small"
  rm -rf "$dir"
  exit "$status"
}
trap finish EXIT

fail() {
  printf 'FAIL: %s\n' "$*" >&2
  exit 1
}

wait_for() {
  local what=$1 until=$((SECONDS + 20))
  shift
  while ! "$@" > /dev/null 2>&1; do
    [[ $SECONDS -lt $until ]] || fail "never: $what"
    sleep 0.02
  done
}

write_config() { # NAME STORE-PATH
  cat > "$dir/$1.cfg" << CFG
security = "none";
ports: ( { name = "p0"; device = "net_ring0"; ip = "10.0.0.1"; } );
node: { name_prefix = "smoke"; drain_ms = 5000; };
store: { path = "$2"; };
control: { socket = "$dir/$1.sock"; private_dir = "$dir/private"; };
CFG
  chmod 600 "$dir/$1.cfg"
}

ctl() { "$build/control/cli/spotctl" -s "$dir/a.sock" "$@"; }
serving() { [[ $(ctl -j node show | jq -r .state) == Serving ]]; }
gone() { [[ ! -d /proc/$1 || $(ps -o stat= -p "$1") == Z* ]]; }

start_control() {
  "$control" --config "$dir/a.cfg" 2>> "$dir/control.log" &
  control_pid=$!
  pids+=("$control_pid")
}

start_fake() {
  "$fake" "$dir/private" 2 room hold > "$dir/fake.out" 2>> "$dir/fake.log" &
  fake_pid=$!
  pids+=("$fake_pid")
}

# ended PID STATUS: waits for its end and checks its exit status.
ended() {
  local status=0
  wait_for "end of $1" gone "$1"
  wait "$1" || status=$?
  [[ $status == "$2" ]] || fail "exit status $status instead of $2"
}

# refused STATUS TEXT COMMAND...: must end with that status and say that.
refused() {
  local want=$1 text=$2 status=0
  shift 2
  "$@" > "$dir/out.log" 2>&1 || status=$?
  [[ $status == "$want" ]] || fail "$*: exit status $status instead of $want"
  grep -q -- "$text" "$dir/out.log" || fail "$*: does not say '$text'"
}

write_config a "$dir/var/store.db"

echo "== arguments and configuration"
refused 2 usage "$control" --nonsense
refused 2 usage "$control" too many words
refused 78 'missing.cfg' "$control" --config "$dir/missing.cfg"
refused 1 'bad.cfg' "$control" --check "$dir/bad.cfg"
"$control" --check "$dir/a.cfg" > /dev/null
"$control" -V | grep -q spotlane-control
sed 's/drain_ms = 5000/drain = 5000/' "$dir/a.cfg" > "$dir/wrong.cfg"
refused 78 'wrong.cfg:3' "$control" --config "$dir/wrong.cfg"

echo "== start, with and without a dataplane"
start_control
wait_for "the management socket" ctl node show
[[ $(ctl -j node show | jq -r .dataplane) == down ]] || fail "no dataplane yet"
[[ $(grep -c 'waiting for the dataplane' "$dir/control.log") == 1 ]] || fail "said more than once"
start_fake
wait_for Serving serving
[[ $(stat -c %a "$dir/var") == 750 ]] || fail "mode of the store's directory"
ctl spot get-or-create room-1 room > /dev/null

echo "== a second control refuses and touches nothing"
before=$(stat -c '%i %Y' "$dir/a.sock" "$dir/a.sock.lock" "$dir/private/dataplane.sock")
refused 69 "already running, pid $control_pid" "$control" --config "$dir/a.cfg"
write_config b "$dir/var/store.db"
refused 75 'store' "$control" --config "$dir/b.cfg"
[[ ! -e $dir/b.sock ]] || fail "left a socket behind"
[[ $(stat -c '%i %Y' "$dir/a.sock" "$dir/a.sock.lock" "$dir/private/dataplane.sock") == "$before" ]] ||
  fail "a refused start touched files"
serving || fail "the first control suffered"

echo "== signals that must not end it"
for signal in HUP USR1 USR2 PIPE CHLD; do
  kill -"$signal" "$control_pid"
done
wait_for "the log line" grep -q 'SIGHUP is ignored' "$dir/control.log"
serving || fail "a signal hurt"

echo "== kill -9 of control: the dataplane goes on, the next control takes over"
node=$(ctl -j node show | jq -r .node)
kill -KILL "$control_pid"
ended "$control_pid" 137
kill -0 "$fake_pid" || fail "the dataplane ended too"
[[ -S $dir/a.sock ]] || fail "no stale socket to replace"
start_control
wait_for Serving serving
[[ $(ctl -j node show | jq -r .node) == "$node" ]] || fail "another lifecycle"
ctl spot find room-1 | grep -q room-1 || fail "room-1 is lost"

echo "== kill -9 of the dataplane: Unavailable, reclaim, a larger generation"
generation=$(ctl -j spot find room-1 | jq -r .ref.objectGeneration)
kill -KILL "$fake_pid"
ended "$fake_pid" 137
unavailable() { ! ctl spot find room-1 > "$dir/out.log" 2>&1 && grep -q Unavailable "$dir/out.log"; }
wait_for Unavailable unavailable
start_fake
wait_for Serving serving
unavailable || fail "a new dataplane took an old Spot"
ctl spot reclaim --node "$node" > /dev/null
ctl spot get-or-create room-1 room > /dev/null
[[ $(ctl -j spot find room-1 | jq -r .ref.objectGeneration) -gt $generation ]] || fail "generation"

echo "== two TERMs: one orderly stop of both"
kill -TERM "$control_pid"
kill -TERM "$control_pid" 2> /dev/null || true
ended "$control_pid" 0
ended "$fake_pid" 0
[[ ! -e $dir/a.sock ]] || fail "the socket is still there"

echo "== spotctl node shutdown is answered before the socket closes; ids are free at once"
start_control
start_fake
wait_for Serving serving
ctl spot get-or-create room-1 room | grep -q Created || fail "room-1 was not released"
ctl node shutdown > /dev/null
ended "$control_pid" 0
ended "$fake_pid" 0

echo "== TERM without a dataplane, and during start"
start_control
wait_for "the management socket" ctl node show
kill -TERM "$control_pid"
ended "$control_pid" 0
start_control
kill -TERM "$control_pid" 2> /dev/null || true
status=0
wait "$control_pid" || status=$?
# Before the first line of main, TERM has its default action.
[[ $status == 0 || $status == 143 ]] || fail "TERM during start: exit status $status"

echo "== things in the place of the socket"
rm -f "$dir/a.sock"
echo text > "$dir/a.sock"
refused 75 'a.sock' "$control" --config "$dir/a.cfg"
[[ $(cat "$dir/a.sock") == text ]] || fail "a file was touched"
rm "$dir/a.sock"
ln -s "$dir/nowhere" "$dir/a.sock"
refused 75 'a.sock' "$control" --config "$dir/a.cfg"
[[ -L $dir/a.sock ]] || fail "a link was touched"
rm "$dir/a.sock"

echo "== stores that cannot be used"
write_config a /proc/store/store.db
refused 75 'store.path' "$control" --config "$dir/a.cfg"
mkdir "$dir/corrupt"
head -c 8192 /dev/urandom > "$dir/corrupt/store.db"
write_config a "$dir/corrupt/store.db"
refused 78 'store' "$control" --config "$dir/a.cfg"
if [[ $(id -u) == 0 ]]; then
  mkdir "$dir/small"
  mount -t tmpfs -o size=64k none "$dir/small"
  head -c 61440 /dev/zero > "$dir/small/full" || true
  write_config a "$dir/small/store.db"
  refused 75 'store' "$control" --config "$dir/a.cfg"
fi
echo passed
