/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the stage interface of Logical Multicast. As api.c: on the lane, inside a callback. */
#include "dataplane/spot/api.h"
#include "dataplane/spot/cast.h"
#include "dataplane/spot/trace.h"

#include "common/ids.h"

#include <errno.h>

static bool is_known(const struct spot_lane *l, const struct spl_topic *topic)
{
	for (uint32_t i = 0; i < l->conf.channels; i++)
		if (l->conf.channel[i] == topic->channel_key)
			return true;
	return false;
}

/* What the Spot has, of this very subscription and in all; -EEXIST, -ENOBUFS or 0. */
static int check_others(struct spot_lane *l, struct spot *s, const struct spl_topic *topic,
			uint64_t packet)
{
	uint32_t n = 0;

	for (uint32_t i = spot_cold_of(s)->subs; i; i = l->topics.subs[i].of_spot, n++) {
		const struct spot_sub *o = &l->topics.subs[i];

		if (o->packet == packet &&
		    spl_key_equal(&l->topics.topics[o->topic].key, &topic->key))
			return -EEXIST;
	}
	return n < SPL_SUBSCRIPTIONS_MAX ? 0 : -ENOBUFS;
}

static int subscribe(struct spot_lane *l, const struct spl_topic *topic, const char *packet,
		     spl_topic_fn fn)
{
	struct spot *s = l->turn.spot;
	uint64_t key;
	uint32_t i;
	int rc;

	if (!topic || !fn || !packet || !spl_name_valid(packet, strlen(packet)))
		return -EINVAL;
	if (spot_stage_of(l, s)->desc->kind == SPL_KIND_INSTANCE)
		return -EPERM;
	if (!is_known(l, topic))
		return -ENOENT;
	key = spl_packet_key(packet, strlen(packet));
	rc = check_others(l, s, topic, key);
	if (rc)
		return rc;
	i = spot_sub_add(&l->topics, &topic->key);
	if (!i)
		return -ENOBUFS;
	l->topics.subs[i].spot = spot_index(l, s);
	l->topics.subs[i].packet = key;
	l->topics.subs[i].fn = fn;
	l->topics.subs[i].name = topic;
	l->topics.subs[i].packet_name = packet;
	l->topics.subs[i].of_spot = spot_cold_of(s)->subs;
	spot_cold_of(s)->subs = i;
	spot_topic_lanes_add(l, &topic->key, 1);
	return 0;
}

int spl_subscribe(struct spl_turn *turn, const struct spl_topic *topic, const char *packet,
		  spl_topic_fn fn)
{
	struct spot_lane *l = spot_lane_of_any(turn);
	int rc;

	if (!l)
		return -EINVAL;
	if (!l->turn.configures)
		return -EPERM;
	rc = subscribe(l, topic, packet, fn);
	if (rc && l->turn.misconfigured == SPL_OK)
		l->turn.misconfigured =
			rc == -ENOENT ? SPL_E_NOT_CONFIGURED : (int)spl_error_of(rc);
	return rc;
}

static int publish_here(struct spot_lane *l, const struct spl_topic *topic, uint64_t packet,
			uint16_t content, const void *payload, uint32_t bytes)
{
	struct spot_rec *r = spot_own_record(l, packet, content, payload, bytes);
	enum spl_message_fail why;
	bool waits;

	if (!r)
		return -ENOBUFS;
	r->kind = SPL_MSG_PUBLISH;
	why = spot_cast_in(l, r, &topic->key, &waits);
	if (why != SPL_FAIL_COUNT) {
		spot_rec_end(l, r);
		return why == SPL_FAIL_WAITERS_FULL ? -ETIMEDOUT
		       : why == SPL_FAIL_NO_RECORD  ? -ENOBUFS
						    : -ESHUTDOWN;
	}
	spot_count(l, SPL_C_MESSAGES_ACCEPTED, 1);
	spot_count(l, waits ? SPL_C_MESSAGES_QUEUED : SPL_C_MESSAGES_FINISHED, 1);
	return 0;
}

int spot_check_publish(const struct spot_lane *l, const struct spl_topic *topic, uint64_t packet,
		       uint16_t content, const void *payload, uint32_t bytes)
{
	int rc = l && topic && packet ? spot_check_payload(l, content, payload, bytes) : -EINVAL;

	if (rc)
		return rc;
	if (!is_known(l, topic))
		return -ENOENT;
	return l->sealed ? -ESHUTDOWN : 0;
}

int spl_publish(struct spl_turn *turn, const struct spl_topic *topic, uint64_t packet_key,
		uint16_t content, const void *payload, uint32_t bytes)
{
	struct spot_lane *l = spot_lane_of(turn);
	struct spl_target target;
	int rc = spot_check_publish(l, topic, packet_key, content, payload, bytes);

	if (rc)
		return rc;
	if (spl_key_lane(&topic->key, l->conf.lanes) == l->conf.lane) {
		rc = publish_here(l, topic, packet_key, content, payload, bytes);
		if (spot_traces_flows(l))
			spot_trace_sent(l, SPL_TK_SEND, NULL, &topic->name, 0, rc);
		return rc;
	}
	target.key = topic->key;
	target.id.len = 0;
	target.instance = NULL;
	rc = spot_send_out(l, SPL_MSG_PUBLISH, &target, packet_key, content, payload, bytes, 0, 0);
	if (spot_traces_flows(l))
		spot_trace_sent(l, SPL_TK_SEND, NULL, &topic->name, 0, rc);
	return rc == 0 || rc == -EMSGSIZE || rc == -ETIMEDOUT ? rc : -ENOBUFS;
}
