/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of a lane, of a port and of a stable type, besides the reasons of reasons.h: one list
 * each, from which the layout of the statistics segment, names, units and help are made. A lane
 * writes only its own; nobody resets.
 */
#ifndef SPOTLANE_COUNTERS_H
#define SPOTLANE_COUNTERS_H

/* X(SYMBOL, "name", "unit", "help"). Gauges go up and down, all others only up. */
#define SPL_LANE_COUNTERS(X) \
	X(LOOPS, "loops", "loops", "passes of the poll loop") \
	X(LOOPS_BUSY, "loops_busy", "loops", "passes that did work") \
	X(LOOP_CYCLES_MAX, "loop_cycles_max", "cycles", "longest pass (gauge)") \
	X(NAPS, "naps", "naps", "times the lane slept or yielded its core") \
	X(FRAMES_RX, "frames_rx", "frames", "frames taken in, from a port or a ring") \
	X(FRAMES_TX, "frames_tx", "frames", "frames given to a port") \
	X(FRAMES_TX_DROPPED, "frames_tx_dropped", "frames", "frames the port would not take") \
	X(FRAMES_HOP, "frames_hop", "frames", "frames moved to the lane that owns them") \
	X(FRAMES_TO_AGENT, "frames_to_agent", "frames", "frames moved to the agent") \
	X(MESSAGES_ACCEPTED, "messages_accepted", "messages", \
	  "whole messages taken from a link, a ring or a handler") \
	X(MESSAGES_FINISHED, "messages_finished", "messages", \
	  "messages whose turn ended in DONE, and replies given to their call") \
	X(MESSAGES_QUEUED, "messages_queued", "messages", "waiting in Spot queues (gauge)") \
	X(MESSAGES_RUNNING, "messages_running", "messages", "in a turn, also suspended (gauge)") \
	X(MESSAGES_SENT, "messages_sent", "messages", "messages handed to a link or a ring") \
	X(TURNS, "turns", "turns", "turns begun") \
	X(TURN_CYCLES_MAX, "turn_cycles_max", "cycles", "longest handler call (gauge)") \
	X(TURNS_OVERRUN, "turns_overrun", "turns", \
	  "turns that took longer than dataplane.turn_overrun_us: one a second is in the log") \
	X(REPLIES_SENT, "replies_sent", "messages", "replies and error replies sent") \
	X(REPLIES_LOST, "replies_lost", "messages", "replies whose route was gone") \
	X(REPLIES_WAITING, "replies_waiting", "messages", \
	  "replies that wait for room in a link or a ring (gauge)") \
	X(REPLIES_MAX, "replies_max", "messages", \
	  "so many empty ones have room, before requests wait for theirs (gauge)") \
	X(CALLS_STARTED, "calls_started", "calls", "requests begun by handlers") \
	X(CALLS_OPEN, "calls_open", "calls", "requests of handlers that have not ended (gauge)") \
	X(CALLS_EXPIRED, "calls_expired", "calls", "requests that ended by their deadline") \
	X(CALLS_CANCELLED, "calls_cancelled", "calls", "requests that their Spot has cancelled") \
	X(SENDS_WAITED, "sends_waited", "messages", \
	  "sends and publishes that waited for room in a queue of this node") \
	X(SENDS_EXPIRED, "sends_expired", "messages", \
	  "sends and requests that found no room in the ring to their lane in time") \
	X(WORK_STARTED, "work_started", "calls", \
	  "computations and operations handed to the workers") \
	X(WORK_REFUSED, "work_refused", "calls", \
	  "those that were refused: as many wait or are open as the configuration allows") \
	X(TICKS, "ticks", "ticks", "timer callbacks begun") \
	X(TICKS_SKIPPED, "ticks_skipped", "ticks", "due ticks that came too late to be delivered") \
	X(TICKS_FAILED, "ticks_failed", "ticks", "timer callbacks that failed") \
	X(TIMERS, "timers", "timers", "timers of the Spots of this lane (gauge)") \
	X(SPOTS, "spots", "spots", "Spots in the lane's table (gauge)") \
	X(LINK_RETRANSMITTED, "link_retransmitted", "packets", "packets sent again") \
	X(LINK_COPIED_OUT, "link_copied_out", "messages", "waiting messages moved out of buffers") \
	X(MBUFS_LOW, "mbufs_low", "passes", "passes that found the pool below its low-water mark") \
	X(FAILURES_UNTOLD, "failures_untold", "events", \
	  "failed callbacks that the log was not told of: one a second is") \
	X(NO_TX_MBUF, "no_tx_mbuf", "frames", "frames not sent now for want of a buffer")

enum spl_lane_counter {
#define SPL_X(sym, name, unit, help) SPL_C_##sym,
	SPL_LANE_COUNTERS(SPL_X)
#undef SPL_X
		SPL_C_COUNT
};

/* X(SYMBOL, "name", "unit", "help"): counters of a port. */
#define SPL_PORT_COUNTERS(X) \
	X(RX_FRAMES, "rx_frames", "frames", "frames received") \
	X(RX_BYTES, "rx_bytes", "bytes", "bytes received") \
	X(RX_MISSED, "rx_missed", "frames", "frames the device dropped for want of descriptors") \
	X(RX_ERRORS, "rx_errors", "frames", "frames the device found broken") \
	X(RX_NOMBUF, "rx_nombuf", "frames", "frames lost for want of a buffer") \
	X(TX_FRAMES, "tx_frames", "frames", "frames sent") \
	X(TX_BYTES, "tx_bytes", "bytes", "bytes sent") \
	X(TX_ERRORS, "tx_errors", "frames", "frames the device failed to send") \
	X(LINK_UP, "link_up", "bool", "link state (gauge)")

enum spl_port_counter {
#define SPL_X(sym, name, unit, help) SPL_P_##sym,
	SPL_PORT_COUNTERS(SPL_X)
#undef SPL_X
		SPL_P_COUNT
};

/* X(SYMBOL, "name", "unit", "help"): running totals of the Spots of one stable type in one lane
 * (S-STAGE-10, S-OBS-5). Work is a message, a subscriber's copy of a publish or a tick, from its
 * place in the queue to the end of its handler. */
#define SPL_STAGE_COUNTERS(X) \
	X(CREATING, "creating", "spots", "being created or waiting for publication (gauge)") \
	X(READY, "ready", "spots", "Ready (gauge)") \
	X(CLOSING, "closing", "spots", "closing: they end what they have (gauge)") \
	X(PENDING, "pending", "records", "work that waits or runs (gauge)") \
	X(PENDING_BYTES, "pending_bytes", "bytes", "payload of it (gauge)") \
	X(ACTIVE, "active", "records", "of the pending: its turn has begun and waits (gauge)") \
	X(ACTIVE_BYTES, "active_bytes", "bytes", "payload of that (gauge)") \
	X(STARTING, "starting", "records", \
	  "messages that wait for their Instance Spot to be started (gauge)") \
	X(STARTING_BYTES, "starting_bytes", "bytes", "payload of them (gauge)") \
	X(TICKS, "ticks", "ticks", "timer callbacks begun") \
	X(TICKS_SKIPPED, "ticks_skipped", "ticks", "due ticks that came too late to be delivered") \
	X(TICK_DELAY, "tick_delay", "ns", "sum of how late callbacks began") \
	X(TICK_DELAY_MAX, "tick_delay_max", "ns", "the latest of them (gauge)") \
	X(CREATED, "created", "spots", "creations that came to a Spot") \
	X(CREATE_REJECTED, "create_rejected", "spots", "creations that on_create declined") \
	X(CREATE_FAILED, "create_failed", "spots", "creations that failed, or were too late") \
	X(CLOSED, "closed", "spots", "closes in which on_closing ended in DONE") \
	X(CLOSE_FAILED, "close_failed", "spots", "closes in which on_closing failed") \
	X(CLOSE_FORCED, "close_forced", "spots", "closes by force: the deadline, or the lease")

enum spl_stage_counter {
#define SPL_X(sym, name, unit, help) SPL_S_##sym,
	SPL_STAGE_COUNTERS(SPL_X)
#undef SPL_X
		SPL_S_COUNT
};

#endif
