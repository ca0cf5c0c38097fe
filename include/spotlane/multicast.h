/* SPDX-License-Identifier: BSD-3-Clause */
/* Logical Multicast of a Spot: part of the stage interface, <spotlane/stage.h> includes it
 * (S-MCAST).
 *
 * A publish names a channel, a topic and a packet; every Ready Spot that has subscribed to exactly
 * these gets the message as a turn of its own. Who is Ready when the publish reaches its lane gets
 * it; a Spot whose queue is full is passed over, and so are Spots of a lane that has no room for it
 * or no records; nobody is told how many there were. Topics match by equality of all bytes
 * (S-TOPIC-1). Messages of one origin under one topic keep their order.
 *
 * The rules of a callback are those of stage.h: every function is called by a callback, on its
 * lane, with its own turn, and allocates nothing.
 */
#ifndef SPOTLANE_MULTICAST_H
#define SPOTLANE_MULTICAST_H

#include <spotlane/ids.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct spl_turn;
struct spl_call;
struct spl_message;

/* A topic of a channel: make it once, keep it, use it for any number of messages. */
struct spl_topic {
	struct spl_key key;   /* of both names */
	uint64_t channel_key; /* of the channel */
	struct spl_name channel, name;
};

/* Fills `topic`; -EINVAL when a name is not 1..255 bytes UTF-8. Any thread. (S-NAME-5) */
int spl_topic_set(struct spl_topic *topic, const void *channel, size_t channel_len,
		  const void *name, size_t name_len);

/* Handler of a subscription. `msg` is what every subscriber gets, the very same bytes; it is no
 * request and has no correlation. */
typedef int (*spl_topic_fn)(struct spl_turn *turn, void *state, const struct spl_message *msg,
			    const struct spl_topic *topic);

/* Subscribes this Spot, in on_configure only, for as long as it lives. `topic` must stay, in
 * `state` or for ever, and `packet` too (1..255 bytes UTF-8, ends with NUL). On any error the
 * creation fails, whatever on_configure returns (S-TOPIC-2,3, S-KIND-3, S-ROLE-5). -EINVAL: bad
 * argument; -EPERM: not in on_configure, or an Instance Spot; -EEXIST: this Spot has that
 * subscription; -ENOENT: this node does not take part in the channel; -ENOBUFS: the Spot or the
 * lane (limits.subscriptions_per_lane) has its limit.
 */
int spl_subscribe(struct spl_turn *turn, const struct spl_topic *topic, const char *packet,
		  spl_topic_fn fn);

/* Publishes one-way; a Spot that has subscribed itself gets it too, in a later turn (S-MCAST-5). 0
 * when it is on its way: nothing takes it back once it has started, and nobody tells when that is
 * (spl_publish_wait() does) (S-MCAST-7). Too many that are under way already, or a full ring to the
 * topic's lane, is waited for up to `timeouts.send_ms`, in order. `packet_key` as in spl_send().
 * The payload is copied once for all subscribers. On an error nobody gets it (S-MCAST-6). -EINVAL:
 * bad argument; -EMSGSIZE; -ENOENT: this node does not take part in the channel (NotFound);
 * -ETIMEDOUT: as many sends and publishes as may be wait already; -ENOBUFS: no memory; -ESHUTDOWN:
 * the node takes nothing new.
 */
int spl_publish(struct spl_turn *turn, const struct spl_topic *topic, uint64_t packet_key,
		uint16_t content, const void *payload, uint32_t bytes);

/* The same as a call: SPL_OK when it has started; DeadlineExceeded when it could not within
 * `timeout_ms` (1..INT_MAX, 0 = `timeouts.send_ms`), and then nobody gets it. Waited for under
 * HOLD. -ENOBUFS, -ESHUTDOWN also as spl_send_wait().
 */
int spl_publish_wait(struct spl_turn *turn, const struct spl_topic *topic, uint64_t packet_key,
		     uint16_t content, const void *payload, uint32_t bytes, uint32_t timeout_ms,
		     struct spl_call **call);

#ifdef __cplusplus
}
#endif
#endif
