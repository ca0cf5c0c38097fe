/* SPDX-License-Identifier: BSD-3-Clause */
/* The private protocol between spotlane-control and spotlane-dataplane.
 *
 * One SOCK_SEQPACKET socket, dataplane.sock, in a directory of mode 0750. The dataplane listens
 * and serves one control at a time; control connects and reconnects. One message a packet: a
 * header, then the fields of its type in order, little-endian. Both ends are built from this file,
 * so another version is refused with both numbers. A request (REQ) has exactly one reply (REP) with
 * the same `corr`; an event (EVT) has none. Byte strings over DP_INLINE_MAX travel as one sealed
 * memfd beside the packet (nfds = 1) and the field is then empty. Every deadline here is absolute
 * CLOCK_BOOTTIME nanoseconds: both processes are on one machine.
 *
 * CONFIG to a dataplane that is configured changes nothing: it answers CONFIGURED as it did the
 * first time, the statistics memfd included, so that a control that was restarted learns types
 * and ports. OK may answer any request instead of its own reply, to refuse it. A PREPARE that
 * comes again (same attempt) repeats its answer, a PUBLISH, DISCARD or CLOSE again has no further
 * effect and is answered. docs/private-protocol.md tells the sequences.
 *
 * Each message is one FIELDS list, from which its struct, encoder and decoder are made. Decoded
 * texts and bytes are views into the packet. Pure: no I/O here; any thread.
 */
#ifndef SPL_COMMON_DP_H
#define SPL_COMMON_DP_H

#include "common/pack.h"

#include <stdint.h>

#define DP_MAGIC	  0x314c5053u /* "SPL1" */
#define DP_VERSION	  7
#define DP_PACKET_MAX	  65536 /* bytes of one packet, header included */
#define DP_INLINE_MAX	  32768 /* bytes of one byte string inside a packet */
#define DP_HEADER_BYTES	  36
#define DP_SOCKET_NAME	  "dataplane.sock"
#define DP_LOCK_NAME	  "dataplane.lock" /* flock'ed by the dataplane for its life */
#define DP_INVENTORY_MAX  128		   /* objects of one inventory page */

/* What a configuration may hold, of texts of at most 255 bytes each. */
#define DP_STAGES_MAX	  64u
#define DP_DIRS_MAX	  16u
#define DP_ARGS_MAX	  32u
#define DP_LIST_BYTES_MAX DP_INLINE_MAX /* of one encoded list */

#define DP_F_REQ	  1u
#define DP_F_REP	  2u
#define DP_F_EVT	  4u

struct dp_header {
	uint16_t version, type, flags, nfds;
	uint32_t len;	/* bytes after the header */
	uint64_t epoch; /* the dataplane's life: random, non-zero, new at every start */
	uint64_t corr;	/* of the request; 0 in events */
};

/* X(number, SYMBOL, struct, "direction", "help"). A reply has its own type. */
#define DP_MESSAGES(X) \
	X(1, HELLO, hello, "D>C evt", "first packet on a connection: who is there, in what state") \
	X(2, CONFIG, config, "C>D req", "what to start with, before EAL") \
	X(3, CONFIGURED, configured, "D>C rep", \
	  "started (statistics memfd attached) or the error") \
	X(4, IDENTITY, identity, "C>D req", "node identity and owner token of this lifecycle") \
	X(5, LEASE_EXTEND, lease_extend, "C>D evt", "new local admission deadline") \
	X(6, LEASE_LOST, lease_lost, "C>D evt", "fence now") \
	X(7, HOST_STATE, host_state, "C>D req", "Serving, Draining …") \
	X(8, OK, ok, "rep", "done, or the error kind and text") \
	X(9, SHUTDOWN_REQ, shutdown_req, "D>C evt", "the dataplane was told to stop") \
	X(10, RESYNC, resync, "C>D req", "inventory from a cursor") \
	X(11, INVENTORY, inventory, "D>C rep", "objects of one lane from the cursor on") \
	X(12, OBJ_PREPARE, obj_prepare, "C>D req", "run factory, on_create, on_initialize") \
	X(13, PREPARED, prepared, "D>C rep", "accepted, rejected or failed") \
	X(14, OBJ_PUBLISH, obj_publish, "C>D req", "open admission: the row is Ready") \
	X(15, OBJ_DISCARD, obj_discard, "C>D req", "free a prepared object") \
	X(16, OBJ_CLOSE, obj_close, "C>D req", "seal, finish accepted, on_closing, free") \
	X(17, CLOSED, closed, "D>C rep", "how the close ended") \
	X(18, SELF_CLOSE, self_close, "D>C evt", "a stage closes its own Spot, or it is idle") \
	X(19, MESH_OP, mesh_op, "D>C req", "control message of a client or of a handler") \
	X(20, MESH_OP_DONE, mesh_op_done, "C>D rep", "its answer") \
	X(21, SPOT_CALL, spot_call, "C>D req", "send or request on behalf of an operator") \
	X(22, SPOT_CALLED, spot_called, "D>C rep", "its end") \
	X(23, EXIT, exit_req, "C>D req", "every row is released: stop the process") \
	X(24, TRACE, trace, "C>D req", "level and sampling of the flow trace")

enum dp_type {
#define DP_X(num, sym, st, dir, help) DP_##sym = num,
	DP_MESSAGES(DP_X)
#undef DP_X
};

/* FIELDS(u8|u16|u32|u64|text|bytes, name): in wire order. */
#define DP_HELLO_FIELDS(F) \
	F(u32, pid) \
	F(u8, state) /* enum dp_state */ \
	F(u64, node_gen) \
	F(u64, lease_gen) \
	F(u64, config_hash) \
	F(u64, entry_gen) /* this and the names: as IDENTITY gave them, 0 and "" before */ \
	F(u64, entry_ver) \
	F(text, rid) \
	F(text, owner_id) \
	F(text, entry_id) \
	F(text, version)
#define DP_CONFIG_FIELDS(F) \
	F(u64, config_hash) \
	F(u32, lanes) \
	F(u8, hugepages) /* 0 no, 1 yes, 2 auto */ \
	F(u32, memory_mb) \
	F(u32, mbufs) \
	F(u32, mbufs_low) /* low-water mark, free buffers */ \
	F(u16, udp_base) \
	F(u32, message_max) \
	F(u64, credit_pool) /* bytes, of the node */ \
	F(u32, credit_min)  /* bytes, of each flow */ \
	F(u32, credit_max) \
	F(u32, associations) \
	F(u32, spots_max)   /* of each lane */ \
	F(u32, records_max) /* of each lane */ \
	F(u64, lane_memory) /* bytes of each lane, for payloads */ \
	F(u32, queue_count) \
	F(u32, queue_bytes) \
	F(u32, request_timeout_ms) \
	F(u32, send_timeout_ms) \
	F(u32, create_timeout_ms) \
	F(u32, turn_budget_us) \
	F(u32, turn_overrun_us) \
	F(u32, lifecycle_cap) \
	F(u32, route_cache_ms) \
	F(u32, agent_cpu)   /* of the main lcore; UINT32_MAX = any */ \
	F(u32, data_room)   /* bytes of one packet buffer, headroom included */ \
	F(u32, idle_nap_us) /* longest nap of an idle lane; 0 = it only yields */ \
	F(u32, lifecycle_queue_count) \
	F(u32, lifecycle_queue_bytes) \
	F(u32, timers_max) /* of each lane */ \
	F(u32, timers_per_spot) \
	F(u32, instance_idle_ms)  /* 0 = never */ \
	F(u32, subscriptions_max) /* of each lane */ \
	F(u32, send_waiters)	  /* of each lane */ \
	F(u32, cpu_threads_min)	  /* of the workers */ \
	F(u32, cpu_threads_max) \
	F(u32, cpu_idle_ms) \
	F(u32, cpu_queue) \
	F(u32, io_operations) \
	F(u64, work_result_bytes) \
	F(text, mesh) \
	F(text, file_prefix) \
	F(bytes, lcores)     /* u16 each: cpu of lane i; empty = any */ \
	F(bytes, eal_args)   /* text8 each */ \
	F(bytes, ports)	     /* dp_port each */ \
	F(bytes, stages)     /* dp_stage each */ \
	F(bytes, stage_dirs) /* text8 each */ \
	F(bytes, channels)   /* text8 each */
#define DP_PORT_FIELDS(F) \
	F(text, name) \
	F(text, device) \
	F(u32, ip) /* host order */ \
	F(u8, prefix_len) \
	F(u32, gateway) /* 0 = none */ \
	F(u16, mtu) \
	F(u16, udp_base)
#define DP_STAGE_FIELDS(F) \
	F(text, module) \
	F(text, symbol) /* of the descriptor; "" = SPL_STAGE_SYMBOL */ \
	F(u8, entry)
#define DP_CONFIGURED_FIELDS(F) \
	F(u8, ok) \
	F(u8, exit_code) /* when not ok: of the process that now ends */ \
	F(u8, huge) \
	F(u32, lanes) \
	F(text, text) \
	F(bytes, types) /* dp_stage_type each */ \
	F(bytes, ports) /* dp_port_up each */
#define DP_STAGE_TYPE_FIELDS(F) \
	F(u8, kind) \
	F(u8, mode) \
	F(u8, relocation) \
	F(u32, state_bytes) \
	F(text, type) \
	F(text, version) \
	F(text, module)
#define DP_PORT_UP_FIELDS(F) \
	F(text, name) \
	F(text, driver) \
	F(u64, mac) /* 48 bits, first octet highest */
#define DP_IDENTITY_FIELDS(F) \
	F(u64, node_gen) \
	F(u64, lease_gen) \
	F(u64, lease_deadline) \
	F(u64, entry_gen) \
	F(u64, entry_ver) \
	F(text, rid) \
	F(text, owner_id) \
	F(text, entry_id)
#define DP_LEASE_EXTEND_FIELDS(F) \
	F(u64, lease_gen) \
	F(u64, deadline) \
	F(u64, sequence)
#define DP_LEASE_LOST_FIELDS(F) F(text, reason)
#define DP_HOST_STATE_FIELDS(F) \
	F(u8, state) /* enum dp_host */ \
	F(u64, deadline)
#define DP_OK_FIELDS(F) \
	F(u8, kind) /* SPL_OK or an error kind */ \
	F(text, text)
#define DP_SHUTDOWN_REQ_FIELDS(F) F(text, cause)
#define DP_RESYNC_FIELDS(F) \
	F(u32, lane) \
	F(u64, cursor)
#define DP_INVENTORY_FIELDS(F) \
	F(u32, lane) \
	F(u64, cursor)	  /* of the next page */ \
	F(u8, more)	  /* 0: this was the lane's last page */ \
	F(bytes, objects) /* dp_object each, up to DP_INVENTORY_MAX */
#define DP_OBJECT_FIELDS(F) \
	F(u8, state) /* enum dp_object_state */ \
	F(u64, obj_gen) \
	F(u64, own_gen) \
	F(u64, attempt) \
	F(text, id)
#define DP_OBJ_PREPARE_FIELDS(F) \
	F(u64, obj_gen) \
	F(u64, own_gen) \
	F(u64, attempt) \
	F(u64, deadline) \
	F(u8, kind) \
	F(text, id) \
	F(text, type) \
	F(bytes, request)
#define DP_PREPARED_FIELDS(F) \
	F(u64, attempt) \
	F(u8, result) /* enum dp_prepared_result */ \
	F(u8, kind)   /* of the failure */ \
	F(text, text) \
	F(u16, content) \
	F(bytes, reply)
#define DP_OBJ_PUBLISH_FIELDS(F) \
	F(u64, obj_gen) \
	F(u64, own_gen) \
	F(u64, ver) \
	F(u64, attempt) \
	F(text, id)
#define DP_OBJ_DISCARD_FIELDS(F) \
	F(u64, obj_gen) \
	F(u64, attempt) \
	F(text, id)
#define DP_OBJ_CLOSE_FIELDS(F) \
	F(u64, obj_gen) \
	F(u8, reason) /* enum spl_closing, or DP_CLOSE_FENCED */ \
	F(u64, deadline) \
	F(text, id)
#define DP_CLOSED_FIELDS(F) \
	F(u8, result) /* enum dp_closed_result */ \
	F(u8, kind) \
	F(text, text)
#define DP_SELF_CLOSE_FIELDS(F) \
	F(u64, obj_gen) \
	F(u8, reason) /* enum spl_closing: EXPLICIT, or IDLE_EVICTED */ \
	F(text, id)
#define DP_MESH_OP_FIELDS(F) \
	F(u8, op)      /* CREATE, FIND, CLOSE_SPOT or RESOLVE of enum spl_message_kind, or \
			  DP_OP_ACTIVATE */ \
	F(u64, source) /* lifecycle of the asking node or client */ \
	F(u64, deadline) \
	F(text, source_rid) \
	F(bytes, body) /* as on the wire: docs/wire.md */
#define DP_MESH_OP_DONE_FIELDS(F) \
	F(u8, kind) \
	F(bytes, body)
#define DP_SPOT_CALL_FIELDS(F) \
	F(u8, is_request) \
	F(u16, content) \
	F(u64, deadline) \
	F(text, id) \
	F(text, packet) \
	F(text, instance) /* type of the Instance intent; "" = none */ \
	F(bytes, payload)
#define DP_SPOT_CALLED_FIELDS(F) \
	F(u8, kind) \
	F(u16, content) \
	F(bytes, payload)
#define DP_EXIT_REQ_FIELDS(F) F(u8, forced)
#define DP_TRACE_FIELDS(F) \
	F(u8, level)  /* enum spl_trace_level */ \
	F(u64, share) /* of SPL_TRACE_ALL flows */

#define DP_T_u8	   uint8_t
#define DP_T_u16   uint16_t
#define DP_T_u32   uint32_t
#define DP_T_u64   uint64_t
#define DP_T_text  struct pack_bytes
#define DP_T_bytes struct pack_bytes
#define DP_F(t, n) DP_T_##t n;

/* name, FIELDS: everything that has a struct dp_NAME and a codec. */
#define DP_STRUCTS(X) \
	X(hello, DP_HELLO_FIELDS) \
	X(config, DP_CONFIG_FIELDS) \
	X(port, DP_PORT_FIELDS) \
	X(stage, DP_STAGE_FIELDS) \
	X(configured, DP_CONFIGURED_FIELDS) \
	X(stage_type, DP_STAGE_TYPE_FIELDS) \
	X(port_up, DP_PORT_UP_FIELDS) \
	X(identity, DP_IDENTITY_FIELDS) \
	X(lease_extend, DP_LEASE_EXTEND_FIELDS) \
	X(lease_lost, DP_LEASE_LOST_FIELDS) \
	X(host_state, DP_HOST_STATE_FIELDS) \
	X(ok, DP_OK_FIELDS) \
	X(shutdown_req, DP_SHUTDOWN_REQ_FIELDS) \
	X(resync, DP_RESYNC_FIELDS) \
	X(inventory, DP_INVENTORY_FIELDS) \
	X(object, DP_OBJECT_FIELDS) \
	X(obj_prepare, DP_OBJ_PREPARE_FIELDS) \
	X(prepared, DP_PREPARED_FIELDS) \
	X(obj_publish, DP_OBJ_PUBLISH_FIELDS) \
	X(obj_discard, DP_OBJ_DISCARD_FIELDS) \
	X(obj_close, DP_OBJ_CLOSE_FIELDS) \
	X(closed, DP_CLOSED_FIELDS) \
	X(self_close, DP_SELF_CLOSE_FIELDS) \
	X(mesh_op, DP_MESH_OP_FIELDS) \
	X(mesh_op_done, DP_MESH_OP_DONE_FIELDS) \
	X(spot_call, DP_SPOT_CALL_FIELDS) \
	X(spot_called, DP_SPOT_CALLED_FIELDS) \
	X(exit_req, DP_EXIT_REQ_FIELDS) \
	X(trace, DP_TRACE_FIELDS)

/* struct dp_NAME; dp_put_NAME appends the fields; dp_get_NAME takes them (check r->bad). */
#define DP_X(name, FIELDS) \
	struct dp_##name { \
		FIELDS(DP_F) \
	}; \
	void dp_put_##name(struct pack_writer *w, const struct dp_##name *m); \
	void dp_get_##name(struct pack_reader *r, struct dp_##name *m);
DP_STRUCTS(DP_X)
#undef DP_X

enum dp_state { DP_STATE_WAITING = 0, DP_STATE_CONFIGURED = 1, DP_STATE_IDENTIFIED = 2 };

/* Host states (S-DRAIN-1). */
enum dp_host {
	DP_HOST_PREPARING = 0,
	DP_HOST_SERVING = 1,
	DP_HOST_RELOCATING = 2,
	DP_HOST_RELOCATED = 3,
	DP_HOST_DRAINING = 4,
	DP_HOST_STOPPED = 5,
	DP_HOST_ERROR = 6,
};

enum dp_object_state { DP_OBJECT_STAGING = 1, DP_OBJECT_READY = 2, DP_OBJECT_CLOSING = 3 };
enum dp_prepared_result {
	DP_PREPARED_ACCEPTED = 0,
	DP_PREPARED_REJECTED = 1,
	DP_PREPARED_FAILED = 2
};
/* MESH_OP of a lane: messages wait for the Instance Spot in `body` (wire_intent_put()); the answer
 * has no body, and OK means that it is Ready. Never on the wire. */
#define DP_OP_ACTIVATE	200u
#define DP_CLOSE_FENCED 0xff /* free it without on_closing: its row is not ours any more */

enum dp_closed_result {
	DP_CLOSED_DONE = 0,    /* on_closing ran, the object is gone */
	DP_CLOSED_MISSING = 1, /* no such incarnation here */
	DP_CLOSED_FAILED = 2,  /* on_closing failed; the object is gone */
	DP_CLOSED_LATE = 3,    /* the deadline passed first; the object was freed by force */
	DP_CLOSED_BUSY = 4,    /* it was to be closed as idle, and is not: it goes on */
};

/* Writes the header into w; `len` is patched by dp_finish. */
void dp_begin(struct pack_writer *w, uint16_t type, uint16_t flags, uint64_t epoch, uint64_t corr);

/* Patches length and number of descriptors; 0, or -EMSGSIZE when something did not fit. */
int dp_finish(struct pack_writer *w, uint16_t nfds);

/* Checks a packet of `n` bytes: 0 and the body in `r`, -EPROTO for a wrong magic or length,
 * -EPROTONOSUPPORT for another version (header filled, so that both numbers can be named).
 */
int dp_open(const void *packet, size_t n, struct dp_header *h, struct pack_reader *r);

/* True when the body was taken exactly: nothing missing, nothing left. */
static inline bool dp_done(const struct pack_reader *r)
{
	return !r->bad && r->left == 0;
}

/* Name of a type ("OBJ_PREPARE"), "unknown" otherwise. */
const char *dp_type_name(uint16_t type);

/* A view of a C string. */
static inline struct pack_bytes dp_text(const char *s)
{
	return (struct pack_bytes){s, (uint32_t)strlen(s)};
}

#endif
