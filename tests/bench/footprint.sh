#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Benchmark `footprint`: growth of the dataplane's resident memory, hugepages included, from one Spot
# to a million Spots with 36-byte ids, per Spot; both daemons run as an operator runs them, with the
# memory store, and control's own growth is shown beside it. Exit 1 over the limit.
#     footprint.sh [--json FILE]
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/../smoke/lib.sh"

spots=1000000
limit=384
json=''
case $#,${1:-} in
  0,) ;;
  2,--json) json=$2 ;;
  *) fail "usage: $0 [--json FILE]" ;;
esac

# resident PID: bytes in ordinary pages and in hugetlb pages, which Rss leaves out.
resident() {
  awk '/^(Rss|Shared_Hugetlb|Private_Hugetlb):/ { sum += $2 } END { printf "%d\n", sum * 1024 }' \
    "/proc/$1/smaps_rollup"
}

verbose=no
lanes=1
stages=(counter.so)
smoke_begin
sed -i 's|^store: .*|store: { backend = "memory"; };|' "$dir/spotlane.cfg"
start_node
python3 "$root/tests/bench/footprint_create.py" "$dir/control.sock" 0 1
dataplane_before=$(resident "$dataplane_pid")
control_before=$(resident "$control_pid")
python3 "$root/tests/bench/footprint_create.py" "$dir/control.sock" 1 $spots
held=$(lane_counter spots)
[[ $held == "$spots" ]] || fail "$held Spots in the table, not $spots"
each=$(awk -v a="$dataplane_before" -v b="$(resident "$dataplane_pid")" -v n=$((spots - 1)) \
  'BEGIN { printf "%.1f", (b - a) / n }')
beside=$(awk -v a="$control_before" -v b="$(resident "$control_pid")" -v n=$((spots - 1)) \
  'BEGIN { printf "%.1f", (b - a) / n }')
printf 'kind=spot %28s %8s bytes a Spot in the dataplane, at most %s; control beside it: %s\n' '' \
  "$each" $limit "$beside"
if [[ -n $json ]]; then
  printf '{"bench":"footprint","case":"kind=spot","value":%s,"unit":"bytes","floor":null,' "$each"
  printf '"ratio":null,"runs":1,"spread":0}\n'
fi > "${json:-/dev/null}"
awk -v each="$each" -v limit=$limit 'BEGIN { exit !(each <= limit) }' ||
  fail "$each bytes a Spot, more than $limit"
