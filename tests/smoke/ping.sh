#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ping and arping from a kernel namespace get answers, before, during and after load, and every
# checksum that the appliance writes is right.
# timeout: 60
# shellcheck source=tests/smoke/lib.sh
source "$(dirname "$0")/lib.sh"

smoke_begin
start_node
ip netns exec "$client_ns" tcpdump -Z root -i "$client_if" -s 0 -w "$dir/all.pcap" --immediate-mode \
  > "$dir/tcpdump.log" 2>&1 &
tcpdump_pid=$!
must_wait_for 'tcpdump' 10 grep -q 'listening on' "$dir/tcpdump.log"
in_client arping -q -c 3 -w 10 -I "$client_if" "$node_ip" || fail 'arping got no answer'
must_ping -c 5
must_ping -c 3 -s 1400
start_load --clients 1 --spots 50 --seconds 1 --quiet
must_ping -c 10
wait "$load_pid" || fail 'load failed'
stop_pid "$tcpdump_pid"
check_conservation || exit 1

in_node ip addr show dev "$node_if" | grep -q "$node_ip" && fail 'the kernel has our address'
tcpdump -Z root -r "$dir/all.pcap" -nvv "src host $node_ip and (udp or icmp)" > "$dir/ours" 2> /dev/null
count=$(grep -c proto "$dir/ours" || true)
[[ $count -gt 100 ]] || fail "only $count packets captured"
grep -q 'bad cksum\|bad udp cksum\|wrong icmp cksum' "$dir/ours" && {
  grep -m 3 -B 1 'bad cksum\|bad udp cksum\|wrong icmp' "$dir/ours"
  fail 'wrong checksums'
}
grep -q 'udp sum ok' "$dir/ours" || fail 'no UDP checksum was checked'
say "$count packets with right checksums"
[[ $(stats lanes | jq '.rows[] | select(.counter == "used_icmp") | .total') -ge 18 ]] ||
  fail 'echo requests are not counted'
stop_node
