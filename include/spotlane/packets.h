/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds on the wire, one list each. docs/wire.md is the specification, common/wire.h the codec. */
#ifndef SPOTLANE_PACKETS_H
#define SPOTLANE_PACKETS_H

/* X(number, SYMBOL, "name", "help"): the kind of a Spotlane packet, low nibble of byte 0. */
#define SPL_PACKET_KINDS(X) \
	X(1, INIT, "init", "client or node asks for an association, with or without a cookie") \
	X(2, COOKIE, "cookie", "stateless answer to an init without a valid cookie") \
	X(3, ACCEPT, "accept", "the association stands") \
	X(4, REFUSE, "refuse", "no association, with the reason") \
	X(5, BEACON, "beacon", "liveness probe") \
	X(6, BEACON_ACK, "beacon_ack", "answer to the probe") \
	X(7, CLOSE, "close", "orderly end of an association") \
	X(8, FLOW, "flow", "records of one class of one flow")

/* X(number, SYMBOL, "name", "help"): a record inside a FLOW packet. */
#define SPL_RECORD_KINDS(X) \
	X(1, MESSAGE, "message", "one whole message") \
	X(2, FRAGMENT, "fragment", "a piece of a message, placed by sequence and offset") \
	X(3, ACK, "ack", "packet numbers received, of either class") \
	X(4, CREDIT, "credit", "bytes of messages that may have been begun, of either class") \
	X(5, CREDIT_WANTED, "credit_wanted", "the sender waits for credit up to this") \
	X(6, PING, "ping", "nothing but a reason to acknowledge")

/* X(number, SYMBOL, "name", "help"): the kind of a message. */
#define SPL_MESSAGE_KINDS(X) \
	X(20, REPLY, "reply", "answer to a request, or its error kind") \
	X(21, SPOT_SEND, "spot_send", "one-way message to a Spot") \
	X(22, SPOT_REQUEST, "spot_request", "message to a Spot that has exactly one answer") \
	X(23, PUBLISH, "publish", "one-way message to all subscribers of a topic") \
	X(40, CREATE, "create", "control: Create or GetOrCreate of a User Spot") \
	X(41, FIND, "find", "control: SpotRef of a Ready Spot") \
	X(42, CLOSE_SPOT, "close_spot", "control: close exactly this incarnation") \
	X(43, RESOLVE, "resolve", "control: route of an id")

enum spl_packet_kind {
#define SPL_X(num, sym, name, help) SPL_PKT_##sym = num,
	SPL_PACKET_KINDS(SPL_X)
#undef SPL_X
};

enum spl_record_kind {
#define SPL_X(num, sym, name, help) SPL_REC_##sym = num,
	SPL_RECORD_KINDS(SPL_X)
#undef SPL_X
};

enum spl_message_kind {
#define SPL_X(num, sym, name, help) SPL_MSG_##sym = num,
	SPL_MESSAGE_KINDS(SPL_X)
#undef SPL_X
};

/* X(number, SYMBOL, "name"): content types of a payload (S-CODEC-1: any other is refused). */
#define SPL_CONTENT_TYPES(X) \
	X(0, RAW, "application/octet-stream") \
	X(1, JSON, "application/json") \
	X(2, TEXT, "text/plain; charset=utf-8")

enum spl_content_type {
#define SPL_X(num, sym, name) SPL_CONTENT_##sym = num,
	SPL_CONTENT_TYPES(SPL_X)
#undef SPL_X
		SPL_CONTENT_COUNT = 3
};

#endif
