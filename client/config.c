/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration, targets and metadata: what the user gives, checked at the border (S-ID-3, S-LIM-8,
 * S-META-1). Any thread; owns nothing.
 */
#include "client/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

void spl_client_config_init(struct spl_client_config *config)
{
	*config = (struct spl_client_config){
		.size = sizeof(*config),
		.udp_base = 4700,
		.mesh = "default",
		.name = "client",
		.send_timeout_us = 1000000,
		.request_timeout_us = 30000000,
		.create_timeout_us = 30000000,
		.calls_max = 16384,
		.waiters_max = 8192,
		.waiting_bytes = 16u << 20,
		.window_bytes = 1u << 20,
		.routes_max = 65536,
		.message_max = SPL_MESSAGE_BYTES_MAX,
		.socket_bytes = 4u << 20,
	};
}

uint64_t client_timeout_ns(int64_t timeout_us)
{
	if (timeout_us <= 0 || timeout_us > (int64_t)INT_MAX * 1000)
		return 0;
	return ((uint64_t)timeout_us + 999) / 1000 * 1000000;
}

/* Letters, digits, dot, dash and underscore, 1..64 of them (S-ID-9). */
static bool is_prefix(const char *s)
{
	static const char legal[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789._-";
	size_t n = strspn(s, legal);

	return n >= 1 && n <= 64 && s[n] == '\0';
}

static int read_peer(struct client_config *out, const struct spl_client_config *in)
{
	struct in_addr address;

	if (!in->address || inet_pton(AF_INET, in->address, &address) != 1)
		return -EINVAL;
	/* 256 ports of lanes and the agent's. */
	if (in->udp_base == 0 || in->udp_base > UINT16_MAX - WIRE_PORT_AGENT)
		return -EINVAL;
	if (!in->mesh || spl_name_set(&out->link.mesh, in->mesh, strlen(in->mesh)) < 0)
		return -EINVAL;
	if (!in->name || !is_prefix(in->name))
		return -EINVAL;
	out->link.ip = ntohl(address.s_addr);
	out->link.base_port = in->udp_base;
	return spl_name_set(&out->name, in->name, strlen(in->name));
}

int client_config_read(struct client_config *out, const struct spl_client_config *in)
{
	memset(out, 0, sizeof(*out));
	if (in->size != sizeof(*in))
		return -EINVAL;
	out->send_ns = client_timeout_ns(in->send_timeout_us);
	out->request_ns = client_timeout_ns(in->request_timeout_us);
	out->create_ns = client_timeout_ns(in->create_timeout_us);
	if (!out->send_ns || !out->request_ns || !out->create_ns)
		return -EINVAL;
	if (in->calls_max == 0 || in->calls_max > CALLS_MAX / 2 || in->waiters_max == 0 ||
	    in->waiters_max > in->calls_max || in->routes_max == 0 || in->routes_max > 1u << 24)
		return -EINVAL;
	if (in->waiting_bytes == 0 || in->window_bytes == 0 || in->message_max == 0 ||
	    in->message_max > SPL_MESSAGE_BYTES_CAP || in->socket_bytes > INT_MAX / 2)
		return -EINVAL;
	out->calls_max = in->calls_max;
	out->waiters_max = in->waiters_max;
	out->routes_max = in->routes_max;
	out->waiting_bytes = in->waiting_bytes;
	if (in->channels_n > SPL_CHANNELS_MAX || (in->channels_n && !in->channels))
		return -EINVAL;
	for (; out->channels < in->channels_n; out->channels++) {
		const char *name = in->channels[out->channels];

		if (!name || !spl_name_valid(name, strnlen(name, SPL_NAME_BYTES_MAX + 1)))
			return -EINVAL;
		out->channel[out->channels] = spl_channel_key(name, strlen(name));
		for (uint32_t i = 0; i < out->channels; i++)
			if (out->channel[i] == out->channel[out->channels])
				return -EINVAL; /* twice (S-NAME-2) */
	}
	out->message_max = in->message_max;
	out->socket_bytes = in->socket_bytes;
	out->link.window_bytes = in->window_bytes;
	out->link.msg_bytes = wire_message_bytes(in->message_max);
	return read_peer(out, in);
}

int spl_client_target_set(struct spl_client_target *target, const void *id, size_t id_bytes)
{
	int err = spl_name_set(&target->id, id, id_bytes);

	if (err == 0)
		target->key = spl_spot_key(id, id_bytes);
	if (err == 0)
		target->instance = NULL;
	return err;
}

int spl_client_target_set_instance(struct spl_client_target *target, const char *type)
{
	if (type && !spl_name_valid(type, strnlen(type, SPL_NAME_BYTES_MAX + 1)))
		return -EINVAL;
	target->instance = type;
	return 0;
}

int spl_client_metadata_put(void *buffer, uint32_t *used, const char *key, const char *value)
{
	struct pack_bytes k, v;
	int len;

	if (!buffer || !used || !key || !value || *used > SPL_METADATA_BYTES_MAX)
		return -EINVAL;
	k = (struct pack_bytes){key, (uint32_t)strnlen(key, SPL_METADATA_BYTES_MAX + 1)};
	v = (struct pack_bytes){value, (uint32_t)strnlen(value, SPL_METADATA_BYTES_MAX + 1)};
	len = wire_meta_set(buffer, *used, SPL_METADATA_BYTES_MAX, k, v);
	if (len < 0)
		return len;
	*used = (uint32_t)len;
	return 0;
}
