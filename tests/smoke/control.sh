#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The control daemon as a process, with the fake dataplane: a second start, stale and foreign socket
# files, signals, exit status, kill -9 of either process, stores that cannot be used.
# timeout: 120
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/lib.sh"

control=$build/control/spotlane-control
fake=$build/tests/lib/fake_dataplane
smoke_dir
on_end() { umount "$dir/small" 2> /dev/null || true; }

configure() { # NAME STORE-PATH
  cat > "$dir/$1.cfg" << CFG
security = "none";
ports: ( { name = "p0"; device = "net_ring0"; ip = "10.0.0.1"; } );
node: { name_prefix = "smoke"; drain_ms = 5000; };
store: { path = "$2"; };
control: { socket = "$dir/$1.sock"; private_dir = "$dir/private"; };
CFG
  chmod 600 "$dir/$1.cfg"
}

start_alone() {
  "$control" --config "$dir/control.cfg" 2>> "$dir/control.log" &
  control_pid=$!
}

start_fake() {
  "$fake" "$dir/private" 2 room hold > "$dir/fake.out" 2>> "$dir/dataplane.log" &
  dataplane_pid=$!
}

configure control "$dir/var/store.db"

say "arguments and configuration"
refused 2 usage "$control" --nonsense
refused 2 usage "$control" too many words
refused 78 'missing.cfg' "$control" --config "$dir/missing.cfg"
refused 1 'bad.cfg' "$control" --check "$dir/bad.cfg"
"$control" --check "$dir/control.cfg" > /dev/null
"$control" -V | grep -q spotlane-control
sed 's/drain_ms = 5000/drain = 5000/' "$dir/control.cfg" > "$dir/wrong.cfg"
refused 78 'wrong.cfg:3' "$control" --config "$dir/wrong.cfg"

say "start, with and without a dataplane"
start_alone
must_wait_for 'the management socket' 20 ctl node show
[[ $(node_field dataplane) == down ]] || fail "no dataplane yet"
[[ $(grep -c 'waiting for the dataplane' "$dir/control.log") == 1 ]] || fail "said more than once"
start_fake
must_wait_for 'Serving' 20 is_serving
[[ $(stat -c %a "$dir/var") == 750 ]] || fail "mode of the store's directory"
ctl spot get-or-create room-1 room > /dev/null

say "a second control refuses and touches nothing"
before=$(stat -c '%i %Y' "$dir/control.sock" "$dir/control.sock.lock" "$dir/private/dataplane.sock")
refused 69 "already running, pid $control_pid" "$control" --config "$dir/control.cfg"
configure other "$dir/var/store.db"
refused 75 'store' "$control" --config "$dir/other.cfg"
[[ ! -e $dir/other.sock ]] || fail "left a socket behind"
[[ $(stat -c '%i %Y' "$dir/control.sock" "$dir/control.sock.lock" "$dir/private/dataplane.sock") == "$before" ]] ||
  fail "a refused start touched files"
is_serving || fail "the first control suffered"

say "signals that must not end it"
for signal in HUP USR1 USR2 PIPE CHLD; do
  kill -"$signal" "$control_pid"
done
must_wait_for 'the log line' 20 grep -q 'SIGHUP is ignored' "$dir/control.log"
is_serving || fail "a signal hurt"

say "kill -9 of control: the dataplane goes on, the next control takes over"
node=$(node_field node)
kill -KILL "$control_pid"
must_end "$control_pid" 137
kill -0 "$dataplane_pid" || fail "the dataplane ended too"
[[ -S $dir/control.sock ]] || fail "no stale socket to replace"
start_alone
must_wait_for 'Serving' 20 is_serving
[[ $(node_field node) == "$node" ]] || fail "another lifecycle"
ctl spot find room-1 | grep -q room-1 || fail "room-1 is lost"

say "kill -9 of the dataplane: Unavailable, reclaim, a larger generation"
generation=$(generation_of room-1)
kill -KILL "$dataplane_pid"
must_end "$dataplane_pid" 137
must_wait_for 'Unavailable' 20 is_unavailable room-1
start_fake
must_wait_for 'Serving' 20 is_serving
is_unavailable room-1 || fail "a new dataplane took an old Spot"
ctl spot reclaim --node "$node" > /dev/null
ctl spot get-or-create room-1 room > /dev/null
is_anew room-1 "$generation" || fail "generation"

say "two TERMs: one orderly stop of both"
kill -TERM "$control_pid"
kill -TERM "$control_pid" 2> /dev/null || true
node_ends
[[ ! -e $dir/control.sock ]] || fail "the socket is still there"

say "spotctl node shutdown is answered before the socket closes; ids are free at once"
start_alone
start_fake
must_wait_for 'Serving' 20 is_serving
ctl spot get-or-create room-1 room | grep -q Created || fail "room-1 was not released"
ctl node shutdown > /dev/null
node_ends

say "TERM without a dataplane, and during start"
start_alone
must_wait_for 'the management socket' 20 ctl node show
kill -TERM "$control_pid"
must_end "$control_pid" 0
start_alone
# Until it is control, the child is this shell, which can take a signal and forget it.
until [[ /proc/$control_pid/exe -ef $control ]]; do
  is_running "$control_pid" || fail "control did not start"
done
kill -TERM "$control_pid" 2> /dev/null || true
status=0
wait "$control_pid" || status=$?
# Before the first line of main, TERM has its default action.
[[ $status == 0 || $status == 143 ]] || fail "TERM during start: exit status $status"

say "things in the place of the socket"
rm -f "$dir/control.sock"
echo text > "$dir/control.sock"
refused 75 'control.sock' "$control" --config "$dir/control.cfg"
[[ $(cat "$dir/control.sock") == text ]] || fail "a file was touched"
rm "$dir/control.sock"
ln -s "$dir/nowhere" "$dir/control.sock"
refused 75 'control.sock' "$control" --config "$dir/control.cfg"
[[ -L $dir/control.sock ]] || fail "a link was touched"
rm "$dir/control.sock"

say "stores that cannot be used"
configure control /proc/store/store.db
refused 75 'store.path' "$control" --config "$dir/control.cfg"
mkdir "$dir/corrupt"
head -c 8192 /dev/urandom > "$dir/corrupt/store.db"
configure control "$dir/corrupt/store.db"
refused 78 'store' "$control" --config "$dir/control.cfg"
if [[ $(id -u) == 0 ]]; then
  mkdir "$dir/small"
  mount -t tmpfs -o size=64k none "$dir/small"
  head -c 61440 /dev/zero > "$dir/small/full" || true
  configure control "$dir/small/store.db"
  refused 75 'store' "$control" --config "$dir/control.cfg"
fi
