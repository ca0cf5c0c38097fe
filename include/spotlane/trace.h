/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow trace: what became of one message, step by step (S-TRACE). The words of its records, the
 * levels, and the rings in which lanes leave them.
 *
 * Each lane has a ring in the statistics segment (stats.h) and alone writes it; what nobody has
 * read in time is overwritten. A reader takes no lock and delays nobody: a record whose `seq` is
 * not twice its number and two, before and after it was copied, was overwritten meanwhile.
 */
#ifndef SPOTLANE_TRACE_H
#define SPOTLANE_TRACE_H

#include <stdint.h>

/* X(SYMBOL, "name", "help") */
#define SPL_TRACE_LEVELS(X) \
	X(OFF, "off", "nothing") \
	X(ERRORS, "errors", "what failed or was dropped") \
	X(NORMAL, "normal", "and the ends of each message, replies, and what was sent") \
	X(DETAILED, "detailed", "and each step in between")

#define SPL_TRACE_RECORDS(X) \
	X(FLOW, "spotlane.message_flow", "a step of a message") \
	X(ERROR, "spotlane.dispatch_error", "a message or callback that failed")

#define SPL_TRACE_PHASES(X) \
	X(NONE, "", "of a dispatch_error") \
	X(RECEIVED, "received", "it came from a peer, another lane or control") \
	X(ADMITTED, "admitted", "it has its place in the queue of its Spot (detailed)") \
	X(DISPATCHED, "dispatched", "its handler begins (detailed)") \
	X(COMPLETED, "completed", "its handler has ended well") \
	X(REPLIED, "replied", "the reply to a request was sent") \
	X(SENT, "sent", "a handler has sent it") \
	X(REPLY_RECEIVED, "reply_received", "the reply to a handler's request came") \
	X(BACKPRESSURED, "backpressured", "a handler's message found no room and was not sent") \
	X(DROPPED, "dropped", "a one-way message ended without its handler")

#define SPL_TRACE_SURFACES(X) \
	X(NODE, "node", "") \
	X(CHANNEL, "channel", "") \
	X(SPOT, "spot", "") \
	X(INSTANCE_SPOT, "instance_spot", "") \
	X(ACTOR, "actor", "") \
	X(STREAM, "stream", "") \
	X(ACTOR_RELOCATION, "actor_relocation", "") \
	X(CLASSIC_FANOUT, "classic_fanout", "")

#define SPL_TRACE_KINDS(X) \
	X(SEND, "send", "") \
	X(REQUEST, "request", "") \
	X(RESPONSE, "response", "") \
	X(ERROR, "error", "") \
	X(CONTROL, "control", "")

#define SPL_TRACE_OUTCOMES(X) \
	X(SUCCEEDED, "succeeded", "") \
	X(FAILED, "failed", "") \
	X(BACKPRESSURED, "backpressured", "") \
	X(DROPPED, "dropped", "") \
	X(CANCELLED, "cancelled", "") \
	X(SHUTDOWN, "shutdown", "")

/* Of a flow record and of an error: one list, as some are in both. */
#define SPL_TRACE_REASONS(X) \
	X(NONE, "", "") \
	X(BACKPRESSURE, "backpressure", "") \
	X(STALE_TARGET, "stale_target", "") \
	X(TARGET_CLOSED, "target_closed", "") \
	X(SHUTDOWN, "shutdown", "") \
	X(LOCATION_UNAVAILABLE, "location_unavailable", "") \
	X(ACTIVATION_REJECTED, "activation_rejected", "") \
	X(ACTIVATION_TIMEOUT, "activation_timeout", "") \
	X(NO_HANDLER, "no_handler", "") \
	X(DECODE_ERROR, "decode_error", "") \
	X(HANDLER_EXCEPTION, "handler_exception", "") \
	X(INVALID_FRAME, "invalid_frame", "") \
	X(REPLY_PATH_MISSING, "reply_path_missing", "") \
	X(UNEXPECTED_REPLY, "unexpected_reply", "")

#define SPL_TRACE_ACTIONS(X) \
	X(NONE, "", "") \
	X(REPLY_ERROR, "reply_error", "") \
	X(FAIL_CALLER, "fail_caller", "") \
	X(DROP, "drop", "")

#define SPL_TRACE_ORIGINS(X) \
	X(NONE, "", "no flow: there is no flow_id either") \
	X(INBOUND, "inbound", "") \
	X(TIMER, "timer", "") \
	X(APPLICATION, "application", "") \
	X(LIFECYCLE, "lifecycle", "")

#define SPL_X(sym, name, help) SPL_TL_##sym,
enum spl_trace_level { SPL_TRACE_LEVELS(SPL_X) SPL_TL_COUNT };
#undef SPL_X
#define SPL_X(sym, name, help) SPL_TN_##sym,
enum spl_trace_name { SPL_TRACE_RECORDS(SPL_X) SPL_TN_COUNT };
#undef SPL_X
#define SPL_X(sym, name, help) SPL_TP_##sym,
enum spl_trace_phase { SPL_TRACE_PHASES(SPL_X) SPL_TP_COUNT };
#undef SPL_X
#define SPL_X(sym, name, help) SPL_TS_##sym,
enum spl_trace_surface { SPL_TRACE_SURFACES(SPL_X) SPL_TS_COUNT };
#undef SPL_X
#define SPL_X(sym, name, help) SPL_TK_##sym,
enum spl_trace_kind { SPL_TRACE_KINDS(SPL_X) SPL_TK_COUNT };
#undef SPL_X
#define SPL_X(sym, name, help) SPL_TO_##sym,
enum spl_trace_outcome { SPL_TRACE_OUTCOMES(SPL_X) SPL_TO_COUNT };
#undef SPL_X
#define SPL_X(sym, name, help) SPL_TR_##sym,
enum spl_trace_reason { SPL_TRACE_REASONS(SPL_X) SPL_TR_COUNT };
#undef SPL_X
#define SPL_X(sym, name, help) SPL_TA_##sym,
enum spl_trace_action { SPL_TRACE_ACTIONS(SPL_X) SPL_TA_COUNT };
#undef SPL_X
#define SPL_X(sym, name, help) SPL_TG_##sym,
enum spl_trace_origin { SPL_TRACE_ORIGINS(SPL_X) SPL_TG_COUNT };
#undef SPL_X

/* A flow: a UUIDv7 and where it began. */
struct spl_flow_id {
	uint64_t hi, lo; /* first and last eight bytes, high first */
	uint64_t origin; /* enum spl_trace_origin; NONE: no flow */
};

/* What lanes read in one word: the level in the upper byte, and below it how many of 2^32 flows are
 * recorded. */
static inline uint64_t spl_trace_word(enum spl_trace_level level, uint64_t share)
{
	return (uint64_t)level << 56 | share;
}
#define SPL_TRACE_ALL	  (UINT64_C(1) << 32)
#define SPL_TRACE_DEFAULT spl_trace_word(SPL_TL_ERRORS, SPL_TRACE_ALL)

#define SPL_TRACE_ENTRIES 1024u /* of a ring; a power of two */

struct spl_trace_record {
	uint64_t seq;	  /* 2 * number + 2; odd while it is written */
	uint64_t time_ns; /* CLOCK_REALTIME */
	struct spl_flow_id flow;
	uint64_t correlation; /* 0: none */
	uint8_t name, phase, surface, kind, outcome, reason, action;
	uint8_t id_len, packet_len, topic_len;
	uint16_t stage;	  /* index and 1; 0: none */
	char id[255];	  /* of the Spot */
	char packet[255]; /* name of the packet or the timer */
	char topic[255];
};

struct spl_trace_ring {
	uint64_t written; /* records ever; release, after the record */
	uint64_t spare[7];
	struct spl_trace_record record[SPL_TRACE_ENTRIES];
} __attribute__((aligned(64)));

#endif
