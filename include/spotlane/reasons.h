/* SPDX-License-Identifier: BSD-3-Clause */
/* What became of every frame and every message, by name.
 *
 * Two laws, exact at rest, for each lane and in total:
 *   frames received   = sum of consumed (SPL_FRAME_USES) + sum of dropped (SPL_FRAME_DROPS)
 *   messages accepted = finished + sum of failed (SPL_MESSAGE_FAILS) + queued + running
 * A frame that holds messages is counted once, as `data`, however many it holds.
 */
#ifndef SPOTLANE_REASONS_H
#define SPOTLANE_REASONS_H

/* X(SYMBOL, "name", "help"): a frame that was used up for its purpose. */
#define SPL_FRAME_USES(X) \
	X(ARP, "arp", "ARP request or reply, answered or learned from") \
	X(ICMP, "icmp", "ICMP echo request, answered") \
	X(HANDSHAKE, "handshake", "association packet: init, cookie, accept, refuse") \
	X(BEACON, "beacon", "liveness probe or its answer") \
	X(CLOSE, "close", "orderly close of an association") \
	X(ACK, "ack", "infrastructure frame without a message: acknowledgement or credit") \
	X(DATA, "data", "frame with at least one new message or fragment") \
	X(DUPLICATE, "duplicate", "packet number already received; acknowledged again") \
	X(OTHER_HOST, "other_host", "valid frame for another address, or a broadcast not for us")

/* X(SYMBOL, "name", "help"): a frame that was thrown away, and why. */
#define SPL_FRAME_DROPS(X) \
	X(RUNT, "runt", "shorter than an Ethernet header") \
	X(OVERSIZE, "oversize", "longer than the port's MTU allows") \
	X(VLAN, "vlan", "VLAN tag, which this port is not configured for") \
	X(LLC, "llc", "802.3 length instead of an EtherType") \
	X(IPV6, "ipv6", "IPv6, which this version does not serve") \
	X(ETHERTYPE, "ethertype", "EtherType that is neither IPv4, ARP nor IPv6") \
	X(ETH_SOURCE, "eth_source", "Ethernet source address is a group address") \
	X(ARP_MALFORMED, "arp_malformed", "ARP packet with wrong lengths or types") \
	X(ARP_SENDER, "arp_sender", "ARP sender that cannot be a neighbour, or has our address") \
	X(IP_TRUNCATED, "ip_truncated", "IP header or total length beyond the frame") \
	X(IP_VERSION, "ip_version", "IP version field is not 4") \
	X(IP_HEADER, "ip_header", "IP header length below 20 bytes") \
	X(IP_LENGTH, "ip_length", "IP total length below the header length") \
	X(IP_CHECKSUM, "ip_checksum", "wrong IPv4 header checksum") \
	X(FRAGMENT, "fragment", "IP fragment: Spotlane never sends one") \
	X(IP_PROTOCOL, "ip_protocol", "neither UDP nor ICMP") \
	X(IP_SOURCE, "ip_source", "source address is broadcast, multicast or ours") \
	X(ICMP_MALFORMED, "icmp_malformed", "ICMP too short or with a wrong checksum") \
	X(ICMP_OTHER, "icmp_other", "ICMP that is not an echo request") \
	X(ICMP_RATE, "icmp_rate", "more echo requests than are answered") \
	X(UDP_TRUNCATED, "udp_truncated", "UDP header or length beyond the IP payload") \
	X(UDP_LENGTH, "udp_length", "UDP length below 8 or not that of the IP payload") \
	X(UDP_SOURCE, "udp_source", "UDP source port 0: nobody to answer") \
	X(UDP_CHECKSUM, "udp_checksum", "wrong UDP checksum") \
	X(UDP_PORT, "udp_port", "destination port that is not ours") \
	X(LINK_SHORT, "link_short", "shorter than a Spotlane header") \
	X(LINK_VERSION, "link_version", "unknown wire version") \
	X(LINK_KIND, "link_kind", "unknown packet kind, or one that does not belong on this port") \
	X(LINK_FLAGS, "link_flags", "reserved bits set, or key epoch or tag without keys") \
	X(LINK_FLOW, "link_flow", "flow id of no association, or of an ended one") \
	X(LINK_LANE, "link_lane", "lane or class that disagrees with the port or the peer") \
	X(LINK_NUMBER, "link_number", "packet number below the receive window") \
	X(LINK_RECORD, "link_record", "record truncated, unknown or inconsistent") \
	X(LINK_CREDIT, "link_credit", "message beyond the credit that was granted") \
	X(LINK_ACK, "link_ack", "acknowledgement of a packet that was never sent") \
	X(LINK_WINDOW, "link_window", "message sequence beyond the receive window") \
	X(LINK_SIZE, "link_size", "message larger than the message limit") \
	X(LINK_MEMORY, "link_memory", "no memory for it now; not acknowledged, so it comes again") \
	X(HANDSHAKE_MALFORMED, "handshake_malformed", "association packet with bad lengths") \
	X(HANDSHAKE_COOKIE, "handshake_cookie", "cookie wrong, expired, or of another address") \
	X(HANDSHAKE_REFUSED, "handshake_refused", "mesh, version or capacity; a refusal was sent") \
	X(HANDSHAKE_RATE, "handshake_rate", "more association packets than are answered") \
	X(LIFECYCLE, "lifecycle", "packet of another lifecycle of this node or of the peer") \
	X(AGENT_RING, "agent_ring", "the agent's ring was full") \
	X(LANE_RING, "lane_ring", "the ring of the lane that owns it was full") \
	X(NO_MBUF, "no_mbuf", "no buffer to linearise or copy it")

/* X(SYMBOL, "name", "help"): an accepted message that did not reach DONE. */
#define SPL_MESSAGE_FAILS(X) \
	X(MALFORMED, "malformed", "message header or metadata does not parse") \
	X(NO_SPOT, "no_spot", "no Spot with this key in the lane") \
	X(NOT_READY, "not_ready", "the Spot is being created or closed") \
	X(QUEUE_FULL, "queue_full", "the Spot's queue is at its count or byte limit") \
	X(WAITERS_FULL, "waiters_full", \
	  "a send or publish of this node would have waited for room, and no more may") \
	X(NO_HANDLER, "no_handler", "no handler for the packet name") \
	X(CONTENT_TYPE, "content_type", "unknown content type") \
	X(EXPIRED, "expired", "its deadline passed before its turn began") \
	X(HANDLER, "handler", "the handler returned FAIL or broke the rules of a turn") \
	X(FENCED, "fenced", "the owner lease has passed") \
	X(CLOSED, "closed", "still queued when its Spot was discarded") \
	X(SHUTDOWN, "shutdown", "refused or still queued when the host shut down") \
	X(NO_REPLY_ROUTE, "no_reply_route", "reply whose requester's association is gone") \
	X(NO_CALL, "no_call", "late, duplicate or unmatched reply") \
	X(NO_RECORD, "no_record", "no record or memory left in the lane") \
	X(UNKNOWN_KIND, "unknown_kind", "message kind that this node does not serve") \
	X(TYPE_MISMATCH, "type_mismatch", "Instance intent, and the id has another kind or type") \
	X(INSTANCE_SPOT, "instance_spot", "its Instance Spot could not be started")

enum spl_frame_use {
#define SPL_X(sym, name, help) SPL_USE_##sym,
	SPL_FRAME_USES(SPL_X)
#undef SPL_X
		SPL_USE_COUNT
};

enum spl_frame_drop {
#define SPL_X(sym, name, help) SPL_DROP_##sym,
	SPL_FRAME_DROPS(SPL_X)
#undef SPL_X
		SPL_DROP_COUNT
};

enum spl_message_fail {
#define SPL_X(sym, name, help) SPL_FAIL_##sym,
	SPL_MESSAGE_FAILS(SPL_X)
#undef SPL_X
		SPL_FAIL_COUNT
};

#endif
