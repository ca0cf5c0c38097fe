/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire, part 3: what a link message carries. Header, metadata, bodies of control messages.
 * docs/wire.md is the specification. Pure; any thread; owns nothing; decoders hand out views into
 * their input and check complete lengths before anything is used (S-WIRE-1).
 */
#ifndef SPL_COMMON_WIRE_MSG_H
#define SPL_COMMON_WIRE_MSG_H

#include <spotlane/errors.h>
#include <spotlane/ids.h>

#include "common/wire.h"

/* Header of a message, 48 bytes, then intent, then metadata, then payload:
 *   0 kind   1 flags   2 content type u16   4 metadata length u16   6 error kind   7 zero
 *   8 deadline budget u32, microseconds   12 intent length u16   14 zero (2)   16 target key (16)
 *   32 packet key u64   40 correlation u64
 */
#define WIRE_MSG_BYTES	     48
#define WIRE_MSG_BUDGET	     8 /* where these fields are, to be written at the last moment */
#define WIRE_MSG_CORRELATION 40
#define WIRE_MSG_METADATA    0x01 /* flag: metadata follows */
#define WIRE_MSG_INTENT	     0x02 /* flag: Instance intent follows the header (S-ACT-1) */
#define WIRE_INTENT_MAX	     (2 * (1 + 255)) /* bytes of an intent */

struct wire_msg {
	uint8_t kind;		/* enum spl_message_kind, also one this node does not know */
	uint8_t error;		/* enum spl_error; SPL_OK unless kind is REPLY */
	uint16_t content;	/* enum spl_content_type, not checked here (S-CODEC-1) */
	uint16_t meta_len;	/* 0..SPL_METADATA_BYTES_MAX */
	uint16_t intent_len;	/* 0 = none; of direct messages only */
	uint32_t budget_us;	/* time left of the deadline when it was sent; 0 = none */
	struct spl_key target;	/* Spot key; zero in replies and control messages */
	uint64_t packet;	/* spl_packet_key(); 0 in replies and control messages */
	uint64_t correlation;	/* non-zero in requests and replies, 0 in sends */
	const uint8_t *intent;	/* out: view, NULL when there is none; not walked */
	const uint8_t *meta;	/* out: view, NULL when there is none */
	const uint8_t *payload; /* out: view */
	uint32_t payload_len;	/* out */
};

/* Writes the header `m` (WIRE_MSG_BYTES; intent, meta, payload and payload_len are not looked at).
 * The caller puts intent, metadata and payload behind it. */
void wire_msg_put(uint8_t *p, const struct wire_msg *m);

/* Decodes the link message of `len` bytes at `p`. 0, or -EBADMSG and `m` undefined. Metadata is not
 * walked: wire_meta_check() does that, nor is the intent: wire_intent_get(). */
int wire_msg_get(struct wire_msg *m, const uint8_t *p, uint32_t len);

/* Instance intent: text8 id, text8 stable type, both legal names: if there is no Spot of that id,
 * an Instance Spot of that type is started and this is its first message. Also the body of
 * DP_OP_ACTIVATE. The putter: bytes written, or -EMSGSIZE. The getter: 0, or -EBADMSG. */
int wire_intent_put(uint8_t *p, size_t cap, struct pack_bytes id, struct pack_bytes type);
int wire_intent_get(struct pack_bytes *id, struct pack_bytes *type, const uint8_t *p, size_t len);

/* Metadata: entries {key length u8, key, value length u16, value}; keys 1..255 bytes in strictly
 * ascending byte order, keys and values UTF-8 without NUL, 1..SPL_METADATA_BYTES_MAX bytes in all
 * (S-META-1). */

/* 0, or -EBADMSG when the `len` bytes at `p` are no legal metadata (S-META-2). */
int wire_meta_check(const uint8_t *p, uint32_t len);

/* Walks checked metadata from `*pos` (0 at the start). 1 = an entry, 0 = the end. */
int wire_meta_next(const uint8_t *p, uint32_t len, uint32_t *pos, struct pack_bytes *key,
		   struct pack_bytes *value);

/* Puts an entry into the `cap` bytes at `p`, of which `len` are used, replacing the value of a key
 * that is there. New length; -EINVAL for an illegal key or value, -EMSGSIZE when it does not fit;
 * the old content then stays. */
int wire_meta_set(uint8_t *p, uint32_t len, uint32_t cap, struct pack_bytes key,
		  struct pack_bytes value);

/* Control messages travel as messages with a correlation, target and packet key zero; the body is
 * the payload. text8 = length byte and bytes. Replies are REPLY messages: the body below with error
 * kind SPL_OK, no body otherwise. All getters: 0 or -EBADMSG; trailing bytes are bad. All putters:
 * the bytes written, or -EMSGSIZE. */

enum wire_create_mode { WIRE_CREATE = 0, WIRE_GET_OR_CREATE = 1 };

/* CREATE: mode u8, operation id u64, timeout u32 ms, text8 id, text8 type, u32 length and request
 */
struct wire_create {
	uint8_t mode;	    /* enum wire_create_mode */
	uint64_t operation; /* non-zero (S-COMPL-5) */
	uint32_t timeout_ms;
	struct pack_bytes id; /* legal name */
	struct pack_bytes type;
	struct pack_bytes request; /* at most SPL_CREATE_REQUEST_BYTES_MAX */
};
int wire_create_put(uint8_t *p, size_t cap, const struct wire_create *c);
int wire_create_get(struct wire_create *c, const uint8_t *p, size_t len);

/* SpotRef: text8 id, object generation u64, text8 mesh, text8 RID */
struct wire_ref {
	struct pack_bytes id;
	uint64_t generation; /* 1..2^63-1 */
	struct pack_bytes mesh;
	struct pack_bytes rid;
};

enum wire_create_state { WIRE_EXISTING = 0, WIRE_CREATED = 1, WIRE_REJECTED = 2 };

/* reply: state u8, SpotRef unless rejected, u32 length and reply */
struct wire_create_reply {
	uint8_t state; /* enum wire_create_state */
	struct wire_ref ref;
	struct pack_bytes reply; /* at most SPL_CREATE_REPLY_BYTES_MAX */
};
int wire_create_reply_put(uint8_t *p, size_t cap, const struct wire_create_reply *c);
int wire_create_reply_get(struct wire_create_reply *c, const uint8_t *p, size_t len);

/* FIND and RESOLVE: text8 id */
int wire_id_put(uint8_t *p, size_t cap, struct pack_bytes id);
int wire_id_get(struct pack_bytes *id, const uint8_t *p, size_t len);

/* FIND reply: found u8, then the SpotRef when 1 */
int wire_find_reply_put(uint8_t *p, size_t cap, const struct wire_ref *ref /* NULL: not found */);
int wire_find_reply_get(struct wire_ref *ref, bool *found, const uint8_t *p, size_t len);

/* CLOSE_SPOT: operation id u64, SpotRef; reply: closed u8 */
int wire_close_put(uint8_t *p, size_t cap, uint64_t operation, const struct wire_ref *ref);
int wire_close_get(uint64_t *operation, struct wire_ref *ref, const uint8_t *p, size_t len);
int wire_close_reply_put(uint8_t *p, size_t cap, bool closed);
int wire_close_reply_get(bool *closed, const uint8_t *p, size_t len);

/* RESOLVE reply: tag u8, lanes u8, zero u16, valid for u32 ms, lifecycle u64, object generation
 * u64, text8 RID. When the tag is not READY the rest is zero and empty. */
enum wire_route_tag { WIRE_ROUTE_NONE = 0, WIRE_ROUTE_READY = 1, WIRE_ROUTE_NOT_READY = 2 };

struct wire_route {
	uint8_t tag; /* enum wire_route_tag */
	uint8_t lanes;
	uint32_t valid_ms;
	uint64_t lifecycle;
	uint64_t generation;
	struct pack_bytes rid;
};
int wire_route_put(uint8_t *p, size_t cap, const struct wire_route *r);
int wire_route_get(struct wire_route *r, const uint8_t *p, size_t len);

#endif
