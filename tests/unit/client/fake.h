/* SPDX-License-Identifier: BSD-3-Clause */
/* A node for tests of the client, in the same thread: the real link engine at the other end of a
 * net made of memory, with a clock that moves only while the client waits. An authority of a few
 * Spots, and a log of every message that reached a lane. What it does wrong is set by the test.
 */
#ifndef SPL_T_CLIENT_FAKE_H
#define SPL_T_CLIENT_FAKE_H

#include <spotlane/client.h>

#include "client/client.h"
#include "tests/lib/t_main.h"

#define FAKE_LANES   3
#define FAKE_SPOTS   64
#define FAKE_LOG     65536
#define FAKE_PACKETS 8192
#define FAKE_HELD    4096
#define MS	     UINT64_C(1000000)

struct fake_packet {
	uint64_t due_ns;
	uint32_t len;
	uint16_t port; /* to the node: its own; to the client: where it came from */
	uint8_t b[1500];
};

struct fake_net {
	struct fake_packet *p; /* ring */
	uint32_t head, tail;
};

enum fake_state { FAKE_MISSING, FAKE_READY, FAKE_CREATING };

struct fake_spot {
	struct spl_name id;
	struct spl_key key;
	enum fake_state state; /* what the authority says */
	bool is_here;	       /* what the lane finds */
	uint64_t generation;
};

struct fake_seen {
	struct spl_key key;
	uint64_t packet, correlation;
	uint64_t number; /* first 8 bytes of the payload, 0 when it has less */
	uint32_t bytes, budget_us, meta_len, intent_len;
	uint8_t intent[64];
	uint64_t at_ns;
	uint8_t kind, lane;
};

struct fake_reply {	 /* due later, or held until the test says */
	uint64_t due_ns; /* 0 = free */
	uint32_t lane, len;
	uint8_t *b;
};

#define FAKE_OPERATIONS 64

struct fake {
	uint64_t now_ns, delay_ns;
	struct t_rand rand;
	uint32_t loss_percent; /* both ways */
	bool is_cut;	       /* nothing passes */
	struct fake_net to_node, to_client;
	uint64_t waited_ns; /* of the clock, in waits of the client */
	/* the node */
	struct assoc *assoc;
	const struct assoc_peer *peer;
	uint32_t slot;
	struct flow *flow[FAKE_LANES];
	uint64_t lifecycle;
	struct spl_name mesh, rid;
	uint64_t credit[WIRE_CLASSES];
	uint64_t generation;
	struct fake_spot spot[FAKE_SPOTS];
	/* what it does */
	uint32_t valid_ms;	  /* of routes */
	uint64_t route_lifecycle; /* that routes name; 0 = its own */
	uint64_t authority_ns;	  /* answers of the authority take so long */
	uint64_t handler_ns;	  /* replies of handlers take so long */
	bool authority_is_mute;
	int authority_error; /* SPL_OK = none */
	bool keeps_credit;   /* messages of the application class are never consumed */
	uint64_t kept_charge[FAKE_LANES];
	bool replies_twice;
	int handler_error; /* SPL_OK = reply with the request's payload */
	const char *error_text;
	uint16_t reply_content;
	bool breaks_bodies;    /* control answers lose their last byte */
	uint32_t create_state; /* enum wire_create_state of creations that find nothing */
	/* what it saw */
	struct fake_seen *seen;
	uint32_t seen_n, resolves, creates, closes;
	uint64_t operation[FAKE_OPERATIONS]; /* of creations and closes, in their order */
	struct fake_reply reply[FAKE_HELD];
	uint32_t replies, most_replies; /* in it; at a time */
	uint32_t out_messages;		/* sent and not acknowledged */
};

/* A node and, connected to it, a client. `conf` NULL = fake_config(). */
struct fake *fake_new(void);
void fake_free(struct fake *f);
void fake_config(struct spl_client_config *conf);
struct net fake_net(struct fake *f);
struct spl_client *fake_client(struct fake *f, const struct spl_client_config *conf);

/* Ends the node's life, silently, and begins another with the same Spots gone. */
void fake_restart(struct fake *f);

/* A Ready Spot; its target. */
struct fake_spot *fake_spot(struct fake *f, const char *id);
struct spl_client_target fake_target(const char *id);

/* Gives back the credit that was kept. */
void fake_consume(struct fake *f);

/* Messages of `kind` seen, with this number when it is not 0. */
uint32_t fake_count(const struct fake *f, int kind, uint64_t number);

/* What a callback saw: its results, and how often it ran. */
struct fake_result {
	unsigned runs;
	int kind;
	uint32_t bytes;
	uint64_t number;
	bool found, closed, has_ref;
	int created;
	struct spl_spot_ref ref;
	uint16_t content;
};
void fake_keep(struct spl_client *c, uint64_t call, const struct spl_client_result *r, void *ctx);

/* A message to `target` whose payload is `number`, which must live until the call was begun. */
struct spl_client_message fake_message(const struct spl_client_target *target,
				       const uint64_t *number);

/* Polls until the result is there, at most 2 minutes of the fake's clock. */
void fake_until(struct spl_client *c, const struct fake_result *r);

/* Polls for `ms` of the fake's clock. */
void fake_run(struct fake *f, struct spl_client *c, uint64_t ms);

#endif
