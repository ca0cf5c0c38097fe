#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Starts that have to be refused, each with one clear sentence and its own exit status, and starts
# after a crash, which have to work.
# timeout: 120
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/lib.sh"

smoke_begin

control=(ip netns exec "$node_ns" "$build/control/spotlane-control" -c "$dir/spotlane.cfg")
dataplane=(ip netns exec "$node_ns" "$build/dataplane/spotlane-dataplane" -d "$dir/private")

start_node
say 'second control'
refused 69 "already running, pid $control_pid" "${control[@]}"
say 'second dataplane'
refused 75 "running" "${dataplane[@]}"
is_serving || fail 'the first ones were disturbed'
[[ $(ctl -j spot get-or-create room-1 room | jq -r .state) == Created ]] || fail 'no longer creates'

say 'stale sockets after a crash'
stop_pid "$control_pid" KILL
stop_pid "$dataplane_pid" KILL
[[ -S $dir/control.sock ]] || fail 'the test expects a stale socket'
start_node
kill -TERM "$control_pid"
node_ends

say 'a file that is not a socket'
rm -f "$dir/control.sock"
echo precious > "$dir/control.sock"
say 'a file in the way'
refused 75 'no socket' "${control[@]}"
[[ $(cat "$dir/control.sock") == precious ]] || fail 'the file was touched'
rm "$dir/control.sock"

say 'the store'
cp "$dir/store.db" "$dir/good.db"
head -c 20000 /dev/urandom > "$dir/store.db"
rm -f "$dir"/store.db-*
say 'corrupt store'
refused 78 'store' "${control[@]}"
cp "$dir/good.db" "$dir/store.db"
mkfifo "$dir/sql"
sqlite3 "$dir/store.db" < "$dir/sql" > "$dir/locker" 2>&1 &
locker=$!
exec 9> "$dir/sql"
printf 'PRAGMA locking_mode=EXCLUSIVE;\nBEGIN EXCLUSIVE;\n.print locked\n' >&9
must_wait_for 'the locker' 10 grep -q locked "$dir/locker"
say 'locked store'
refused 75 'store' "${control[@]}"
exec 9>&-
wait "$locker"

say 'a full disk'
mkdir "$dir/small"
mount -t tmpfs -o size=64k tmpfs "$dir/small"
on_end() { umount "$dir/small" 2> /dev/null || true; }
dd if=/dev/zero of="$dir/small/fill" bs=4096 > /dev/null 2>&1 || true
sed -i "s|path = .*store.db|path = \"$dir/small/store.db|" "$dir/spotlane.cfg"
say 'disk full'
refused 75 'store' "${control[@]}"
umount "$dir/small"

say 'the dataplane'
sed -i "s|path = .*store.db|path = \"$dir/store.db|" "$dir/spotlane.cfg"
cp "$dir/spotlane.cfg" "$dir/good.cfg"
# bad_start NAME STATUS WORD EDIT: with the edited configuration the dataplane ends with STATUS.
bad_start() {
  sed "$4" "$dir/good.cfg" > "$dir/spotlane.cfg"
  start_control
  say "$1"
  refused "$2" "$3" "${dataplane[@]}"
  kill -TERM "$control_pid"
  must_end "$control_pid" 0
  cp "$dir/good.cfg" "$dir/spotlane.cfg"
}
bad_start 'missing device' 78 'p0' 's|iface=[a-z0-9]*|iface=nowhere0|'
bad_start 'unknown driver' 78 'p0' 's|net_af_packet0[^"]*|net_nothing0|'
bad_start 'missing stage' 78 'nothing.so' 's|room.so|nothing.so|'
free=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages)
if [[ $free -lt 16384 ]]; then
  bad_start 'too few hugepages' 75 'hugepages' \
    's|hugepages = .*|hugepages = "yes";|; s|memory_mb = .*|memory_mb = 32768;|'
fi

say 'and a good start after all that'
start_node
stop_node
