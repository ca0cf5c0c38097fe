/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of multicast share: Spots that subscribe as their ids say and note what they hear,
 * and publish when they are told.
 */
#ifndef SPL_TEST_SPOT_CASTRIG_H
#define SPL_TEST_SPOT_CASTRIG_H

#include "tests/unit/spot/teststage.h"

/* A Spot subscribes as the text that its id ends with says: "-CHANNEL/TOPIC/PACKET", any number. */
struct cast_member {
	struct test_state base;
	struct spl_topic topic[4];
	char packet[4][16];
	unsigned n;
	int rc[4];
};

extern const struct spl_stage cast_member, cast_member_small, cast_member_instance;

/* What was heard, in its order. */
struct cast_seen {
	char id[64], topic[32];
	char text[32];
	const void *payload;
	uint32_t bytes;
	uint64_t source;
};
extern struct cast_seen cast_seen[4096];
extern unsigned cast_n_seen;
extern int cast_rc; /* what the handler returns */

extern struct spl_topic cast_news, cast_sport; /* topics "news" and "sport" of channel "world" */
extern int cast_publish_rc;		       /* of the last spl_publish() */
extern unsigned cast_publishes;		       /* so many a packet "publish" */

void cast_begin(unsigned lanes);
uint64_t cast_make(const char *id);

/* A publish of a peer, straight to the lane of its topic. */
void cast_from_peer(const char *channel, const char *topic, const char *packet, const char *text);

/* How often `id` has heard something. */
unsigned cast_heard_by(const char *id);

#endif
