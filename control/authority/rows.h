/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows and keys of the store (A §15.7): encoding, decoding, and which combinations are legal.
 *
 * A value is one format byte (kind of row and version of its layout), packed little-endian fields
 * and CRC32C of all before it. Decoders check every length, range and combination (A-LOC-3) and
 * hand out views into the value. Pure; any thread. Encoders return the length, or 0 when the
 * buffer is too small or the row is illegal.
 */
#ifndef SPL_CONTROL_AUTHORITY_ROWS_H
#define SPL_CONTROL_AUTHORITY_ROWS_H

#include "control/authority/messages.h"

#define ROW_PREFIX	 "/spotlane/"
#define ROW_KEY_MAX	 640  /* of any key below */
#define ROW_OBJ_MAX	 2560 /* of an object row without a relocation record */
#define ROW_LEASE_MAX	 1024
#define ROW_OPTIONAL_MAX 65536 /* relocation record, recovery pointer */

/* Layout versions are part of the format byte; another one is refused. */
enum row_format {
	ROW_OBJ = 0x11,
	ROW_NODE = 0x21,
	ROW_CAP = 0x31,
	ROW_LEASE = 0x41,
	ROW_OPT = 0x51
};

enum row_op { ROW_STEADY = 0, ROW_COLD = 1, ROW_RELOCATION = 2, ROW_CLOSE = 3 };
enum row_alloc { ROW_NONE = 0, ROW_RESERVED = 1, ROW_ACTIVE = 2 }; /* NONE: Entry Spots */

struct row_owner {
	struct auth_bytes owner_id, mesh, rid;
	uint64_t lifecycle;
	int64_t lease_gen;
};

struct row_op_id {
	struct auth_bytes rid;
	uint64_t lifecycle, hi, lo;
};

/* One creation under way. The request is not in the row: it is at the node that runs it. */
struct row_pending {
	uint64_t attempt;
	struct row_op_id op;
	int64_t deadline; /* ns, clock of the owner's machine */
	uint32_t size;	  /* of the request */
	uint8_t sha256[32];
};

struct row_obj {
	enum auth_row_state state;
	enum row_op op;
	enum spl_kind kind;
	enum row_alloc alloc;
	uint64_t own_gen;
	uint32_t members;
	uint64_t epoch; /* of the membership; grows with each change */
	struct row_owner owner;
	struct auth_bytes type;
	bool has_pending;
	struct row_pending pending;
	struct auth_bytes reloc, recovery; /* opaque; n = 0: none */
};

struct row_type {
	struct auth_bytes name;
	enum spl_kind kind;
	uint32_t limit;
};

struct row_node {
	struct row_owner owner; /* lease_gen 0: the row lies under the lease */
	struct auth_bytes endpoint, entry_id, version;
	uint64_t revision; /* from 1, S-ID-10 */
	enum auth_host_state state;
	uint32_t lanes, weight;
	size_t n_types;
	struct auth_bytes types; /* packed; row_node_type() walks them */
};

/* Counters of one node; the entries are those types that have any. */
struct row_cap_type {
	struct auth_bytes name;
	enum spl_kind kind;
	uint32_t active, reserved;
};

struct row_cap {
	uint32_t spots_active, spots_reserved, pending;
	size_t n_types;
	struct auth_bytes types; /* packed; row_cap_type() walks them */
};

struct row_lease {
	struct auth_bytes mesh, rid, entry_id;
	uint64_t lifecycle, lease; /* id of the store's lease */
	int64_t start;		   /* ns */
};

enum row_result { ROW_NO_RESULT = 0, ROW_CREATED = 1, ROW_REJECTED = 2, ROW_FAILED = 3 };

/* Terminal of one creation (A-LOC-20). */
struct row_opt {
	enum row_result result;
	int kind; /* FAILED: enum spl_error; SPL_OK otherwise */
	struct auth_bytes id, type, mesh, rid;
	uint64_t obj_gen, own_gen, lifecycle;
	int64_t lease_gen;
	struct auth_bytes text;
	uint16_t content;
	struct auth_bytes reply;
};

/* ---- keys; each returns the length, at most ROW_KEY_MAX ---- */
uint32_t row_key_obj(char out[ROW_KEY_MAX], struct auth_bytes spot_id);
uint32_t row_key_lease(char out[ROW_KEY_MAX], struct auth_bytes owner_id);
uint32_t row_key_node(char out[ROW_KEY_MAX], struct auth_bytes mesh, struct auth_bytes rid);
uint32_t row_key_cap(char out[ROW_KEY_MAX], struct auth_bytes rid);
uint32_t row_key_opt(char out[ROW_KEY_MAX], const struct row_op_id *op);
/* Prefix of all Spot rows, and the Spot id inside such a key (n = 0: no such key). */
struct store_bytes row_spots_prefix(void);
struct auth_bytes row_spot_of_key(struct store_bytes key);

/* ---- values ---- */
uint32_t row_obj_put(uint8_t *out, size_t room, const struct row_obj *r);
uint32_t row_node_put(uint8_t *out, size_t room, const struct row_node *r,
		      const struct row_type *types);
uint32_t row_cap_put(uint8_t *out, size_t room, const struct row_cap *r,
		     const struct row_cap_type *types);
uint32_t row_lease_put(uint8_t *out, size_t room, const struct row_lease *r);
uint32_t row_opt_put(uint8_t *out, size_t room, const struct row_opt *r);

/* 0, -EBADMSG (damaged: checksum or length), -EPROTONOSUPPORT (another format or version),
 * -EINVAL (illegal combination or value). */
int row_obj_get(struct row_obj *r, const void *val, size_t n);
int row_node_get(struct row_node *r, const void *val, size_t n);
int row_cap_get(struct row_cap *r, const void *val, size_t n);
int row_lease_get(struct row_lease *r, const void *val, size_t n);
int row_opt_get(struct row_opt *r, const void *val, size_t n);

/* Walks the types of a checked row: pass *at = 0 first; false at the end. */
bool row_node_type(const struct row_node *r, size_t *at, struct row_type *out);
bool row_cap_type(const struct row_cap *r, size_t *at, struct row_cap_type *out);

/* True when the combination of fields is one that may exist (A-LOC-3). */
bool row_obj_legal(const struct row_obj *r);

#endif
