/* SPDX-License-Identifier: BSD-3-Clause */
/* How a stage is written: the one header that a stage includes.
 *
 * A stage module is a shared object that exports one descriptor (SPL_STAGE_EXPORT). The dataplane
 * loads it by the name in the configuration, checks it, and runs its callbacks on lanes.
 *
 * Rules of a callback (S-CF-1, S-TURN-*, S-MSG-4):
 * - It runs in a turn of its Spot. No other callback of that Spot runs at the same time, so `state`
 *   needs no lock.
 * - It never blocks, allocates, locks or calls the kernel: the lane serves other Spots. To wait,
 *   it starts a call, hands over a continuation with spl_call_then() and returns SPL_SUSPENDED.
 * - What it is given (`spl_message`, `spl_result`, payloads) is read-only and stays until the end
 *   of the turn, continuations included. Copy what must live longer into `state`.
 * - It returns SPL_DONE, SPL_FAIL(kind) or SPL_SUSPENDED. Whatever a turn has not answered when it
 *   ends is answered for it: a request without a reply gets InternalFailure.
 *
 * Every function below is called by a callback, on its lane, with its own turn; a turn of another
 * Spot or an ended one gives -EINVAL. Nothing here allocates; payloads are copied before return.
 */
#ifndef SPOTLANE_STAGE_H
#define SPOTLANE_STAGE_H

#include <spotlane/call.h>
#include <spotlane/create.h>
#include <spotlane/errors.h>
#include <spotlane/ids.h>
#include <spotlane/limits.h>
#include <spotlane/multicast.h>
#include <spotlane/packets.h>
#include <spotlane/timer.h>
#include <spotlane/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: a module built for another one is refused by name. */
#define SPL_STAGE_API 3

struct spl_turn; /* the running turn; valid inside the callback and its continuations */

/* What a callback returns. */
#define SPL_DONE       0
#define SPL_SUSPENDED  1
#define SPL_REJECTED   2 /* on_create only: the Spot is declined, a result and not an error */
#define SPL_FAIL(kind) (0x100 | (kind))

enum spl_mode {
	SPL_MODE_SPOT_WIDE = 0, /* one gate for the Spot and all its members */
	SPL_MODE_PER_ACTOR = 1, /* a gate for each member */
};

enum spl_relocation {
	SPL_RELOCATION_DISABLED = 1,
	SPL_RELOCATION_RECREATE = 2,
	SPL_RELOCATION_PRESERVE_STATE = 3,
};

enum spl_closing {
	SPL_CLOSING_EXPLICIT = 0,
	SPL_CLOSING_HOST_SHUTDOWN = 1,
	SPL_CLOSING_RELOCATION_OUT = 2,
	SPL_CLOSING_IDLE_EVICTED = 3,
};

/* A message as its handler sees it (S-MSG-3). */
struct spl_message {
	const char *packet; /* the registered name, of the handler's own table */
	const void *payload;
	uint32_t payload_bytes;
	const void *metadata; /* NULL when there is none; see spl_metadata_next() */
	uint32_t metadata_bytes;
	uint16_t content; /* enum spl_content_type */
	bool is_request;
	uint64_t correlation; /* 0 for a send */
	uint64_t source; /* sender's lifecycle on this node: equal for messages of one sender */
	uint64_t deadline_ns; /* absolute, clock of spl_now_ns(); 0 = none */
};

/* Handler of one packet name. `state` is the Spot's own memory: zeroed before on_create, and
 * aligned to 16 bytes. Up to 16 bytes of it cost a message no cache line of their own.
 */
typedef int (*spl_packet_fn)(struct spl_turn *turn, void *state, const struct spl_message *msg);

/* Which message kinds a handler takes. */
#define SPL_TAKES_SEND	  1u
#define SPL_TAKES_REQUEST 2u

struct spl_handler {
	const char *packet; /* 1..255 bytes UTF-8 */
	unsigned takes;	    /* SPL_TAKES_* */
	spl_packet_fn fn;
};

/* The descriptor of a stage: constant for the life of the process. */
struct spl_stage {
	uint32_t api;	     /* SPL_STAGE_API */
	uint32_t size;	     /* sizeof(struct spl_stage) */
	const char *type;    /* stable type name (S-NAME-6): 1..255 bytes UTF-8 */
	const char *version; /* of the module, for people; may be NULL */
	enum spl_kind kind;
	enum spl_mode mode;
	enum spl_relocation relocation;
	uint32_t state_bytes; /* of one Spot, up to SPL_STATE_BYTES_MAX */
	uint32_t queue_count; /* records of one Spot that wait or run, 0 = the configured default */
	uint32_t queue_bytes; /* and their cost in bytes, 0 = the configured default */
	const struct spl_handler *handlers;
	uint32_t handler_count; /* up to SPL_HANDLERS_MAX */

	/* First of all, and only to subscribe (S-TOPIC-3): every other function of a turn but
	 * spl_spot_id() and spl_now_ns() gives -EINVAL. May be NULL. A failure fails the creation.
	 */
	int (*on_configure)(struct spl_turn *turn, void *state);

	/* Creation, in this order (S-CREATE-5): `request` is the creator's payload, empty when none
	 * was given; `deadline_ns` in it is the creation's. on_create may answer with spl_reply(),
	 * which the creator gets beside Created or Rejected. Both may be NULL (= SPL_DONE).
	 * on_create is of User Spots only: nobody asks for the others (A-LOC-33).
	 */
	int (*on_create)(struct spl_turn *turn, void *state, const struct spl_message *request);
	int (*on_initialize)(struct spl_turn *turn, void *state);

	/* Once per Spot, after the last accepted turn, while it is still whole (S-CLOSING-1). Not
	 * on a crash. May be NULL.
	 */
	int (*on_closing)(struct spl_turn *turn, void *state, enum spl_closing reason,
			  uint64_t deadline_ns);

	/* Reserved for later milestones; must be NULL. */
	void (*reserved[8])(void);
};

/* The symbol that the loader looks for. */
#define SPL_STAGE_SYMBOL "spl_stage_descriptor"
#define SPL_STAGE_EXPORT \
	extern const struct spl_stage spl_stage_descriptor; \
	__attribute__((visibility("default"))) const struct spl_stage spl_stage_descriptor

/* A Spot that is spoken to: make it once, keep it, use it for any number of messages. */
struct spl_target {
	struct spl_key key;
	struct spl_name id;   /* asked of the authority when no such Spot is found here */
	const char *instance; /* NULL, or Instance intent: see spl_target_set_instance() */
};

/* Fills `target` from an id, without Instance intent; -EINVAL when the id is no legal name
 * (S-ID-3). Any thread.
 */
int spl_target_set(struct spl_target *target, const void *id, size_t len);

/* Messages to `target` start the Instance Spot of the stable type `type` when there is no Spot of
 * that id, and wait for it (S-ACT-1): the first of them is the first that it handles, and if it
 * cannot be started each request ends with the reason and each send is dropped (S-ACT-5,11). Where
 * there is a Spot, it gets them as any other message, but one of another kind or type:
 * TypeMismatch. `type` must stay valid as long as the target is used; NULL takes the intent back.
 * -EINVAL: no legal name. Any thread.
 */
int spl_target_set_instance(struct spl_target *target, const char *type);

/* Now, nanoseconds of the lane's monotonic clock as of this turn's start. */
uint64_t spl_now_ns(const struct spl_turn *turn);

/* Id of the Spot whose turn this is; the name stays for the life of the Spot. */
const struct spl_name *spl_spot_id(const struct spl_turn *turn);

/* Answers the request of this turn, once. `content` is an enum spl_content_type.
 * -EINVAL: not a request, unknown content, or already answered; -EMSGSIZE: over the message limit;
 * -ENOBUFS: no memory in the lane (the turn may FAIL instead). Payload is copied. (S-DIR-6,
 * S-COMPL-7)
 */
int spl_reply(struct spl_turn *turn, uint16_t content, const void *payload, uint32_t bytes);

/* Sends one-way to a Spot, this one included (S-REENT-2): 0 when it is on its way. A full queue of
 * this node, and a full ring to the target's lane, is waited for up to `timeouts.send_ms`, behind
 * what waits already; what becomes of it nobody tells (spl_send_wait() does) (S-LIM-5).
 * -EINVAL: bad argument; -EMSGSIZE; -ENOBUFS: no memory; -ETIMEDOUT: as many sends as may be wait
 * for room already, so this one does not (limits.send_waiters_per_lane); -EAGAIN: it is larger than
 * the target's whole queue, or as many messages as may be wait for this Instance Spot to start;
 * -ENOENT: no such Spot in this lane; -EPERM: with Instance intent, and the Spot in this lane is of
 * another kind or type (TypeMismatch); -ESHUTDOWN: the node, the target or the lease is at its end.
 */
int spl_send(struct spl_turn *turn, const struct spl_target *target, uint64_t packet_key,
	     uint16_t content, const void *payload, uint32_t bytes);

/* The same as a call that the admission answers: SPL_OK when the target's queue has taken it
 * (S-DIR-4); DeadlineExceeded when it found no room within `timeout_ms` (1..INT_MAX, 0 =
 * `timeouts.send_ms`), and then it is never delivered (S-LIM-6); NotFound, Unavailable,
 * CapacityExceeded, ShuttingDown. It is waited for under HOLD (S-DIR-5).
 * To this very Spot, whose queue is full, it ends with DeadlineExceeded: no room can come while
 * this turn waits. In another lane it can neither be cancelled nor taken back by the end of its
 * handler: when the time of this Spot or node is up before that lane has answered, or it has not
 * answered a second after the timeout, the result is Unavailable, and the send may be or have been
 * delivered. -EINVAL, -EMSGSIZE, -ENOBUFS as spl_request(); -ETIMEDOUT: the ring to the target's
 * lane is full, and as many as may be wait for it; -ESHUTDOWN: the time of this Spot is up.
 */
int spl_send_wait(struct spl_turn *turn, const struct spl_target *target, uint64_t packet_key,
		  uint16_t content, const void *payload, uint32_t bytes, uint32_t timeout_ms,
		  struct spl_call **call);

/* Starts a request; its result goes to the continuation given with spl_call_then(). A call whose
 * handler ends without one is cancelled. At most one call is waited for at a time, and a handler
 * starts at most 64. `timeout_ms` 1..INT_MAX, 0 = the configured request timeout (S-DIR-7). `wait`
 * says how it will be waited for, because that decides whether it may be sent at all: on an error
 * nothing has left, and the target sees nothing (S-YIELD-2, S-REENT-1).
 * -EINVAL: bad argument; -EMSGSIZE; -ENOBUFS: no call slot or memory, or the 65th of this handler;
 * -ETIMEDOUT: the ring to the target's lane is full, and as many as may be wait for it (S-DIR-8);
 * -EDEADLK: it waits for this very Spot under HOLD, and not from a timer with a gate of its own
 * (S-REENT-1); -EPERM: SPL_WAIT_YIELD where there is no gate to give back: in on_create,
 * on_initialize and on_closing, and in every callback of an Entry Spot and of a stage with
 * SPL_MODE_PER_ACTOR (S-YIELD-1); -ESHUTDOWN: the time of this Spot is up. Errors of the target
 * arrive as the call's result.
 */
int spl_request(struct spl_turn *turn, const struct spl_target *target, uint64_t packet_key,
		uint16_t content, const void *payload, uint32_t bytes, uint32_t timeout_ms,
		enum spl_wait wait, struct spl_call **call);

/* Asks, when the turn ends, for the close of this Spot; it serves until the authority agrees
 * (S-CLOSE-6). -EINVAL in on_create, on_initialize and on_closing; -EALREADY when it is closing.
 */
int spl_close_self(struct spl_turn *turn);

/* Walks metadata: `*pos` starts at 0. 1 = an entry, 0 = the end. Keys and values are UTF-8 and not
 * NUL-terminated (S-META-1).
 */
int spl_metadata_next(const struct spl_message *msg, uint32_t *pos, const char **key,
		      uint32_t *key_bytes, const char **value, uint32_t *value_bytes);

#ifdef __cplusplus
}
#endif
#endif
