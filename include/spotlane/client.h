/* SPDX-License-Identifier: BSD-3-Clause */
/* libspotlane: an ordinary Linux process joins a Spotlane mesh as an Object Client, over one UDP
 * socket of the kernel. No DPDK, no root, no thread of its own.
 *
 * Rules:
 * - A client belongs to one thread at a time. A process may have many clients.
 * - Calls are asynchronous: each accepted one ends exactly once, in its callback, with a reply,
 *   one of the 13 error kinds or SPL_CANCELLED (S-COMPL-1). Callbacks run inside
 *   spl_client_poll(), the _wait functions and spl_client_close(), never inside the function that
 *   began the call. They may begin and cancel calls, but not poll, wait, connect or close (-EBUSY).
 * - What the call site can check is a negative errno of the function, and no callback follows.
 * - Nothing that was accepted is ever sent a second time as another operation (S-DIR-9).
 * - Without an association a call ends at once with Unavailable; so does every pending call when
 *   the association is lost. The client then connects again by itself, as long as it is polled.
 * - Memory is bounded by the configuration.
 */
#ifndef SPOTLANE_CLIENT_H
#define SPOTLANE_CLIENT_H

#include <spotlane/errors.h>
#include <spotlane/ids.h>
#include <spotlane/limits.h>
#include <spotlane/multicast.h>
#include <spotlane/packets.h>

#ifdef __cplusplus
extern "C" {
#endif

struct spl_client;

/* Always begun by spl_client_config_init(). Timeouts are microseconds, rounded up to whole
 * milliseconds, 1 ms .. INT_MAX ms (S-LIM-8).
 */
struct spl_client_config {
	uint32_t size;		     /* sizeof(struct spl_client_config) */
	const char *address;	     /* IPv4 address of a node; no default */
	uint16_t udp_base;	     /* first UDP port of the node: 4700 */
	const char *mesh;	     /* mesh name: "default" */
	const char *name;	     /* start of the client's RID, [A-Za-z0-9._-]{1,64}: "client" */
	int64_t send_timeout_us;     /* a send, or a request, waits so long for room: 1 s */
	int64_t request_timeout_us;  /* of requests that name none: 30 s */
	int64_t create_timeout_us;   /* of create, find, close that name none: 30 s */
	uint32_t calls_max;	     /* calls that have not ended: 16384 */
	uint32_t waiters_max;	     /* calls among them that wait for a route or for room: 8192 */
	uint64_t waiting_bytes;	     /* what those may hold: 16 MiB */
	uint64_t window_bytes;	     /* sent and not yet acknowledged, each lane and class: 1 MiB. A
					message of n bytes counts as the next multiple of 256 of
					n + 112 + its metadata, and when it is full messages wait
					until half is acknowledged (S-LIM-13) */
	uint32_t routes_max;	     /* cached places of Spots: 65536 */
	uint32_t message_max;	     /* largest payload in or out: 1 MiB */
	const char *const *channels; /* that this client takes part in; copied. None */
	uint32_t channels_n;	     /* up to SPL_CHANNELS_MAX */
	uint32_t socket_bytes; /* kernel socket buffer, each way: 4 MiB (or what is allowed) */
};

/* A Spot that is spoken to: made once, used for any number of messages. */
struct spl_client_target {
	struct spl_name id;
	struct spl_key key;
	const char *instance; /* NULL, or see spl_client_target_set_instance() */
};

enum spl_client_created {
	SPL_CLIENT_EXISTING = 0,
	SPL_CLIENT_CREATED = 1,
	SPL_CLIENT_REJECTED = 2,
};

/* How a call ended. Everything in it is readable until the callback returns. */
struct spl_client_result {
	int kind;	  /* SPL_OK, enum spl_error or SPL_CANCELLED */
	uint16_t content; /* of payload: enum spl_content_type */
	uint32_t payload_bytes;
	const void *payload;		 /* reply of a request, answer of on_create */
	enum spl_client_created created; /* create, get_or_create */
	bool found;			 /* find: `ref` names the Ready Spot */
	bool closed;			 /* close_spot: false as in S-CLOSE-2 */
	const struct spl_spot_ref *ref;	 /* existing, created or found; NULL otherwise */
};

typedef void (*spl_client_fn)(struct spl_client *client, uint64_t call,
			      const struct spl_client_result *result, void *ctx);

/* One message. The payload is copied before the function returns. */
struct spl_client_message {
	const struct spl_client_target *target;
	uint64_t packet;  /* spl_packet_key() of the packet name */
	uint16_t content; /* enum spl_content_type */
	uint32_t payload_bytes;
	const void *payload;
	const void *metadata; /* built by spl_client_metadata_put() */
	uint32_t metadata_bytes;
	int64_t timeout_us;	       /* request only: 0 = the configured one */
	const struct spl_topic *topic; /* publish only, in the place of target */
};

/* Asks for a Spot. */
struct spl_client_creation {
	const void *id; /* NULL: a new id, and AlreadyExists instead of Existing (S-CREATE-1) */
	uint32_t id_bytes;
	const char *type;	/* stable type */
	uint32_t request_bytes; /* up to SPL_CREATE_REQUEST_BYTES_MAX */
	const void *request;
	int64_t timeout_us; /* 0 = the configured one */
};

struct spl_client_stats {
	uint64_t packets_sent, packets_received, packets_retransmitted, packets_dropped;
	uint64_t messages_sent, messages_received;
	uint64_t late_replies;	       /* for a call that had ended (S-COMPL-6) */
	uint64_t resolves, route_hits; /* questions to the authority, and those saved */
	uint64_t connects, losses;     /* associations begun, and lost */
	uint64_t calls_pending, calls_waiting, waiting_bytes, routes; /* now */
};

/* Fills in the defaults. */
void spl_client_config_init(struct spl_client_config *config);

/* Makes a client; nothing is sent yet. -EINVAL: a value out of its range, or no such address;
 * -ENOMEM; errors of socket(2). The configuration is copied.
 */
int spl_client_open(const struct spl_client_config *config, struct spl_client **out);

/* Ends it: every pending call ends with ShuttingDown (S-COMPL-12), the node is told, memory goes.
 * Messages that the link took but that were not acknowledged wait up to `linger_ms`. NULL is fine.
 */
int spl_client_close(struct spl_client *client, int linger_ms);

/* Connects and waits up to `timeout_ms`, -1 = for ever. 0: connected; -ETIMEDOUT: no answer, goes
 * on trying when polled; -ECONNREFUSED: refused, see spl_client_refusal(); -EBUSY.
 */
int spl_client_connect(struct spl_client *client, int timeout_ms);

/* True while the association stands. */
bool spl_client_connected(const struct spl_client *client);

/* Why the node refused, for people; "" when it did not. */
const char *spl_client_refusal(const struct spl_client *client);

/* Receives, runs timers and callbacks, sends. Waits up to `timeout_ms` (0 = not, -1 = for ever)
 * when there is nothing to do. Number of calls that ended, or -EBUSY, or an error of poll(2).
 */
int spl_client_poll(struct spl_client *client, int timeout_ms);

/* For an event loop: poll when the descriptor is readable, when spl_client_timeout() milliseconds
 * have passed (-1 = never), and after beginning calls.
 */
int spl_client_fd(const struct spl_client *client);
int spl_client_timeout(const struct spl_client *client);

/* Fills `target`, without Instance intent; -EINVAL when the id is no legal name (S-ID-3). Any
 * thread. */
int spl_client_target_set(struct spl_client_target *target, const void *id, size_t id_bytes);

/* Sends and requests to `target` start the Instance Spot of the stable type `type` when there is no
 * Spot of that id (S-ACT-1). A send ends when the link took it, whatever becomes of the Spot
 * (S-ACT-5); a request ends with its reply, or with why there is none: NotFound: nobody offers the
 * type; TypeMismatch: the id is a Spot of another kind or type; CapacityExceeded: no room; or what
 * made the start fail. `type` must stay valid as long as the target is used; NULL takes the intent
 * back. -EINVAL: no legal name. Any thread.
 */
int spl_client_target_set_instance(struct spl_client_target *target, const char *type);

/* Appends one entry to metadata of `*used` bytes in `buffer`, replacing an entry of the same key
 * (S-META-1). -EINVAL: no UTF-8, or a NUL; -EMSGSIZE: over SPL_METADATA_BYTES_MAX in all.
 */
int spl_client_metadata_put(void *buffer, uint32_t *used, const char *key, const char *value);

/* The calls. `call`, when not NULL, gets the handle for spl_client_cancel(). `fn` may be NULL for a
 * send or publish only. All: 0, or -EINVAL: argument; -EMSGSIZE: too large; -ENOBUFS: calls_max are
 * pending; -ENOMEM; -ESHUTDOWN: the client is being closed.
 *
 * send ends with SPL_OK when the link took it (S-DIR-4), which says nothing about the handler;
 * DeadlineExceeded proves that it was never sent. request ends with the reply.
 * publish ends with SPL_OK when the link took it for the node's subscribers of message->topic, of
 * whom nothing is told (S-MCAST-7,11), and with NotFound when the client does not take part in the
 * topic's channel (S-MCAST-1).
 * find ends with SPL_OK and `found` false when there is no such Spot. close_spot closes exactly the
 * incarnation of `ref`.
 */
int spl_client_send(struct spl_client *client, const struct spl_client_message *message,
		    spl_client_fn fn, void *ctx, uint64_t *call);
int spl_client_publish(struct spl_client *client, const struct spl_client_message *message,
		       spl_client_fn fn, void *ctx, uint64_t *call);
int spl_client_request(struct spl_client *client, const struct spl_client_message *message,
		       spl_client_fn fn, void *ctx, uint64_t *call);
int spl_client_create(struct spl_client *client, const struct spl_client_creation *creation,
		      spl_client_fn fn, void *ctx, uint64_t *call);
int spl_client_find(struct spl_client *client, const void *id, size_t id_bytes, int64_t timeout_us,
		    spl_client_fn fn, void *ctx, uint64_t *call);
int spl_client_close_spot(struct spl_client *client, const struct spl_spot_ref *ref,
			  int64_t timeout_us, spl_client_fn fn, void *ctx, uint64_t *call);

/* 1: cancelled, its callback will say so; 0: it had already ended, or ends otherwise. What was
 * already sent is neither cancelled nor undone (S-COMPL-8, S-COMPL-9).
 */
int spl_client_cancel(struct spl_client *client, uint64_t call);

/* Polls until the call has ended (its callback has run). 0; -ENOENT: no such call; -EBUSY. */
int spl_client_wait(struct spl_client *client, uint64_t call);

/* The same calls, waited for. `answer` is filled when the return value is 0, and then freed by
 * spl_client_answer_free(). -EINTR: a signal came first, and the call is cancelled.
 */
struct spl_client_answer {
	int kind;	  /* SPL_OK or enum spl_error */
	uint16_t content; /* of payload */
	uint32_t payload_bytes;
	void *payload; /* NULL when empty */
	enum spl_client_created created;
	bool found, closed, has_ref;
	struct spl_spot_ref ref;
};
int spl_client_request_wait(struct spl_client *client, const struct spl_client_message *message,
			    struct spl_client_answer *answer);
int spl_client_create_wait(struct spl_client *client, const struct spl_client_creation *creation,
			   struct spl_client_answer *answer);
int spl_client_find_wait(struct spl_client *client, const void *id, size_t id_bytes,
			 struct spl_client_answer *answer);
int spl_client_close_spot_wait(struct spl_client *client, const struct spl_spot_ref *ref,
			       struct spl_client_answer *answer);
void spl_client_answer_free(struct spl_client_answer *answer);

/* Polls until nothing sent is unacknowledged and no call waits. 0; -ETIMEDOUT; -EBUSY. */
int spl_client_flush(struct spl_client *client, int timeout_ms);

void spl_client_stats(const struct spl_client *client, struct spl_client_stats *out);

#ifdef __cplusplus
}
#endif
#endif
