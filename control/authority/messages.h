/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes into the authority and what comes out of it: requests, events, effects.
 *
 * The driver (control's main loop, the simulator, a test) passes requests and events in, then pulls
 * effects until there is none. Times are absolute nanoseconds on one CLOCK_BOOTTIME-like clock.
 * Every pointer inside a request or event is borrowed for the call. Every pointer inside an effect
 * is valid until the next call into the authority, except a store batch, which stays valid until
 * it is handed back.
 */
#ifndef SPL_CONTROL_AUTHORITY_MESSAGES_H
#define SPL_CONTROL_AUTHORITY_MESSAGES_H

#include "common/ids.h"
#include "control/store/store.h"

#include <spotlane/errors.h>

#define AUTH_TYPES_MAX	  1024 /* S-NAME-6 */
#define AUTH_ENDPOINT_MAX 256  /* bytes of the advertised endpoint, opaque here */
#define AUTH_REQUEST_MAX  (1U << 20)
#define AUTH_REPLY_MAX	  ((1U << 20) - 2048) /* the terminal record with it fits one value */
#define AUTH_TOKEN_MAX	  64
#define AUTH_TEXT_MAX	  384

struct auth_bytes {
	const void *p;
	uint32_t n;
};

/* Who asks: repeats of one operation carry the same identity and get the same terminal. */
struct auth_op_id {
	struct spl_name rid; /* of the source node or client */
	uint64_t lifecycle;  /* of the source, not 0 */
	uint64_t hi, lo;     /* operation id */
};

/* Why AUTH_FX_CLOSE_LOCAL: seal admission, finish accepted turns, on_closing once, free. IDLE:
 * only if it is still idle, declined otherwise (S-IDLE-2). FENCED: free without on_closing, the row
 * is not ours any more. */
enum auth_close_reason {
	AUTH_EXPLICIT_CLOSE = 0,
	AUTH_HOST_SHUTDOWN = 1,
	AUTH_IDLE_EVICTED = 3,
	AUTH_FENCED = 0xff
};

/* ---- requests: each accepted one is answered by exactly one AUTH_FX_REPLY ---- */

enum auth_verb {
	AUTH_CREATE,	    /* op, type [, mesh, request]: mints the id */
	AUTH_GET_OR_CREATE, /* op, id, type [, mesh, request] */
	AUTH_FIND,	    /* id: the Ready incarnation or none */
	AUTH_SHOW,	    /* id: the row as it is, for an operator (A-LOC-46) */
	AUTH_LIST,	    /* [kind, type, mesh, token], limit */
	AUTH_CLOSE,	    /* op, id, obj_gen: exactly that incarnation */
	AUTH_RESOLVE,	    /* id: route for messages (S-ADDR-2) */
	AUTH_RECLAIM_ID,    /* id: free the row of a dead owner (A-FAIL-10) */
	AUTH_RECLAIM_NODE,  /* rid: free every row of that dead node */
	AUTH_ACTIVATE,	    /* op, id, type: the Instance Spot, Ready, started if there is no row
			     * (S-ACT-1,13); answered like GET_OR_CREATE */
};

struct auth_request {
	enum auth_verb verb;
	uint64_t tag;	  /* the driver's; comes back in the reply */
	int64_t deadline; /* ns; the reply comes by then */
	struct auth_op_id op;
	struct auth_bytes id;	       /* Spot id; RECLAIM_NODE: the RID */
	struct auth_bytes type;	       /* stable type; LIST: n = 0 means any */
	struct auth_bytes mesh;	       /* n = 0: left out */
	struct auth_bytes request;     /* argument of on_create, at most AUTH_REQUEST_MAX */
	uint64_t obj_gen;	       /* CLOSE */
	bool own;		       /* CLOSE: from the Spot's own context (S-CLOSE-1) */
	enum auth_close_reason reason; /* CLOSE: EXPLICIT_CLOSE or IDLE_EVICTED */
	enum spl_kind kind;	       /* LIST: SPL_KIND_INVALID means any */
	uint32_t limit;		       /* LIST: 1..SPL_LIST_PAGE_MAX entries */
	struct auth_bytes token;       /* LIST: n = 0 means the first page */
};

enum auth_created { AUTH_EXISTING = 0, AUTH_CREATED = 1, AUTH_REJECTED = 2 };
enum auth_route { AUTH_ROUTE_READY, AUTH_ROUTE_MISSING, AUTH_ROUTE_UNAVAILABLE, AUTH_ROUTE_FAILED };
enum auth_row_state {
	AUTH_ROW_CREATING = 1,
	AUTH_ROW_READY,
	AUTH_ROW_CLOSING,
	AUTH_ROW_RELOCATING
};

/* One object as people and routes see it. Names point into the reply. */
struct auth_entry {
	struct auth_bytes id, type, mesh, rid;
	uint64_t obj_gen, own_gen, ver;
	uint64_t lifecycle, lease_gen; /* of the owner */
	enum spl_kind kind;
	enum auth_row_state state;
	bool unavailable; /* the recorded owner is gone */
};

/* What stood in the way of a creation last, for those who count. */
enum auth_obstacle {
	AUTH_FREE_WAY,
	AUTH_MET_OWNER,	  /* somebody has the id */
	AUTH_MET_KIND,	  /* as another kind */
	AUTH_MET_TYPE,	  /* as another type */
	AUTH_MET_CLOSING, /* it was being closed */
	AUTH_MET_STORE,	  /* the store failed */
	AUTH_MET_FENCE,	  /* the owner lease was gone */
};

struct auth_reply {
	enum auth_verb verb;
	uint64_t tag;
	int kind;	  /* SPL_OK, or enum spl_error; then only text is set (and route) */
	const char *text; /* one sentence for people, never NULL */
	bool found;	  /* FIND, SHOW: entry is set */
	struct auth_entry
		entry; /* CREATE.., FIND, SHOW, RESOLVE READY. A Rejected one names no Spot */
	enum auth_created created;
	struct auth_bytes reply;	  /* of on_create; Created and Rejected */
	uint16_t content;		  /* content type of it */
	bool closed;			  /* CLOSE: false = gone before, or members remain */
	enum auth_route route;		  /* RESOLVE: one of four, never merged */
	int64_t valid_until;		  /* RESOLVE READY: the owner's local lease deadline, ns */
	const struct auth_entry *entries; /* LIST */
	size_t n_entries;
	struct auth_bytes next;	     /* LIST: token of the next page; n = 0: last */
	enum auth_obstacle obstacle; /* CREATE.., also of one that came to a Spot */
	uint32_t reclaimed, kept;    /* RECLAIM_*: rows freed; rows that changed meanwhile */
};

/* ---- events ---- */

/* One node lifecycle. rid, lifecycle, owner_id and entry_id are made here at HOST_START. */
struct auth_host_id {
	struct spl_name rid, entry_id, owner_id;
	uint64_t lifecycle;
	int64_t lease_gen, entry_gen, entry_ver;
};

struct auth_type {
	struct spl_name name;
	enum spl_kind kind; /* USER or INSTANCE */
	uint32_t limit;	    /* Spots of this type on this node; 0 = no limit */
};

/* State of an object in the dataplane's inventory (M02). */
enum auth_inventory_state { AUTH_INV_STAGING, AUTH_INV_READY, AUTH_INV_CLOSING };

enum auth_verdict { AUTH_ACCEPTED, AUTH_DECLINED, AUTH_FAILED };

enum auth_event_kind {
	AUTH_EV_HOST_START,  /* a new dataplane said hello: claim a lifecycle for it */
	AUTH_EV_HOST_RESUME, /* a dataplane said hello that already has a lifecycle */
	AUTH_EV_HOST_DEAD,   /* the current lifecycle's process is proved gone */
	AUTH_EV_LINK_UP,     /* the private socket is back, same dataplane: commands come again */
	AUTH_EV_ANSWER,	     /* dataplane's answer to a command */
	AUTH_EV_INVENTORY,   /* one object of the inventory */
	AUTH_EV_INVENTORY_END,
	AUTH_EV_LIFECYCLE, /* what this machine knows about a lifecycle; asked for or not */
	AUTH_EV_SHUTDOWN,  /* planned stop of the node */
};

struct auth_event {
	enum auth_event_kind kind;
	union {
		struct { /* HOST_START, HOST_RESUME */
			const struct auth_type *types;
			size_t n_types;
			struct auth_bytes endpoint;
			uint32_t lanes;
			struct auth_host_id id; /* HOST_RESUME: as in its HOST_READY */
		} host;
		struct {			   /* ANSWER */
			uint64_t cmd;		   /* of the command */
			int kind;		   /* SPL_OK, or why it failed */
			enum auth_verdict verdict; /* PREPARE; CLOSE_LOCAL: DECLINED, not idle */
			struct auth_bytes reply;   /* PREPARE accepted or declined */
			uint16_t content;	   /* content type of the reply */
			const char *text;	   /* for people, may be NULL */
		} answer;
		struct { /* INVENTORY */
			struct auth_bytes id;
			uint64_t obj_gen, own_gen;
			uint64_t attempt; /* STAGING */
			enum auth_inventory_state state;
		} inventory;
		struct { /* LIFECYCLE */
			struct spl_name rid;
			uint64_t lifecycle; /* 0: every lifecycle of this rid */
			enum { AUTH_LIFE_UNKNOWN, AUTH_LIFE_HELD, AUTH_LIFE_ENDED } state;
		} lifecycle;
		struct { /* SHUTDOWN */
			int64_t deadline;
		} shutdown;
	} u;
};

/* ---- effects ---- */

enum auth_host_state { /* A-DRAIN-1, and NONE without a dataplane */
		       AUTH_HOST_PREPARING = 0,
		       AUTH_HOST_SERVING = 1,
		       AUTH_HOST_DRAINING = 4,
		       AUTH_HOST_STOPPED = 5,
		       AUTH_HOST_ERROR = 6,
		       AUTH_HOST_NONE = 0xff,
};

/* S-DRAIN-1. */
static inline bool auth_host_is_ready(enum auth_host_state s)
{
	return s == AUTH_HOST_SERVING;
}

enum auth_fx_kind {
	AUTH_FX_STORE,	 /* run the batch, then auth_store_done(); one at a time */
	AUTH_FX_REPLY,	 /* terminal of a request */
	AUTH_FX_PREPARE, /* M10: factory and callbacks; answered. Never sent twice for an attempt,
			  * except after LINK_UP or a resume: then the dataplane repeats its answer
			  */
	AUTH_FX_PUBLISH, /* M11: open admission, or renew the fence of an open one; answered */
	AUTH_FX_DISCARD, /* M12: forget the attempt; answered when nothing of it runs any more;
			  * an attempt it does not know is OK */
	AUTH_FX_CLOSE_LOCAL,	 /* M19; answered when the object is gone, whatever its kind says:
				  * kind and text tell only how on_closing ended */
	AUTH_FX_HOST_READY,	 /* the lifecycle stands: answer hello with it. Again after a lost
				  * token: objects with another lease_gen stay fenced */
	AUTH_FX_HOST_STATE,	 /* M05 */
	AUTH_FX_LEASE,		 /* M03: new local deadline */
	AUTH_FX_LEASE_LOST,	 /* M04: fence now */
	AUTH_FX_INVENTORY,	 /* M02: send the whole inventory, then INVENTORY_END */
	AUTH_FX_LIFECYCLE_CHECK, /* M60: answer with AUTH_EV_LIFECYCLE */
	AUTH_FX_LIFECYCLE_GONE,	 /* a lifecycle that has ended has no row left: forget it */
	AUTH_FX_HOST_STOPPED,	 /* the planned stop is over, or the start failed: rows released,
				  * lease gone. With `forced` the dataplane must be ended first,
				  * then HOST_DEAD: what it held is released after that */
	AUTH_FX_LOG,
};

/* How a planned stop ended (A-DRAIN-3). */
enum auth_outcome { AUTH_STOPPED = 0, AUTH_FORCE_STOPPED = 1 };
enum auth_stop_reason { AUTH_STOP_NONE = 0, AUTH_STOP_DEADLINE = 1, AUTH_STOP_TEARDOWN = 2 };

struct auth_fence {
	uint64_t obj_gen, own_gen, ver;
	int64_t lease_gen;
};

struct auth_command { /* PREPARE, PUBLISH, DISCARD, CLOSE_LOCAL */
	uint64_t cmd; /* echo it in the answer; the same when the command is sent again */
	bool again;
	struct auth_bytes id, type;
	enum spl_kind kind;
	struct auth_fence fence; /* PREPARE, DISCARD, CLOSE_LOCAL: ver is 0 */
	uint64_t attempt;
	struct auth_bytes request; /* PREPARE; empty when again after a resume */
	int64_t deadline;
	enum auth_close_reason reason; /* CLOSE_LOCAL */
};

enum auth_log { AUTH_LOG_ERROR, AUTH_LOG_WARN, AUTH_LOG_INFO, AUTH_LOG_DEBUG };

struct auth_effect {
	enum auth_fx_kind kind;
	union {
		struct store_batch *store;
		struct auth_reply reply;
		struct auth_command command;
		struct { /* HOST_READY, LEASE */
			const struct auth_host_id *id;
			int64_t deadline; /* local admission deadline, ns (A-LEASE-4) */
		} host;
		struct { /* HOST_STATE */
			enum auth_host_state state;
			int64_t deadline;
		} state;
		struct { /* LEASE_LOST, HOST_STOPPED */
			const char *text;
			bool forced;
			enum auth_outcome outcome; /* unless forced: then it follows */
			enum auth_stop_reason reason;
		} stop;
		struct { /* LIFECYCLE_CHECK, LIFECYCLE_GONE: rid */
			struct spl_name rid;
			uint64_t lifecycle;
		} check;
		struct {
			enum auth_log level;
			const char *text;
		} log;
	} u;
};

#endif
