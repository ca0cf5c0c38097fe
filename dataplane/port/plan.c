/* SPDX-License-Identifier: BSD-3-Clause */
/* Port decisions: see plan.h. Pure; the agent at start, and tests; owns nothing. */
#include "dataplane/port/plan.h"

#include "dataplane/frame/view.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HEADROOM 128u /* what DPDK keeps free in front of a frame; only for the message */
#define DESC_MAX 16384u

int port_say(char err[PORT_ERR_BYTES], int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, PORT_ERR_BYTES, fmt, ap);
	va_end(ap);
	return code;
}

/* Hex digits at s, at most max; sets *s behind them. */
static unsigned hex_digits(const char **s, unsigned max)
{
	unsigned n = 0;

	while (n < max && **s && strchr("0123456789abcdefABCDEF", **s)) {
		(*s)++;
		n++;
	}
	return n;
}

/* Length of a PCI address at the start of s, with or without its domain; 0: none. */
static size_t pci_len(const char *s, bool with_domain)
{
	const char *p = s;

	if (with_domain && (hex_digits(&p, 8) < 4 || *p++ != ':'))
		return 0;
	if (hex_digits(&p, 2) != 2 || *p++ != ':' || hex_digits(&p, 2) != 2 || *p++ != '.' ||
	    *p < '0' || *p > '7')
		return 0;
	p++;
	return *p == '\0' || *p == ',' ? (size_t)(p - s) : 0;
}

bool port_is_pci(const char *device)
{
	return pci_len(device, true) || pci_len(device, false);
}

bool port_device_name(const char *device, char out[PORT_NAME_BYTES])
{
	size_t len = strcspn(device, ",");
	int n = snprintf(out, PORT_NAME_BYTES, "%s%.*s", pci_len(device, false) ? "0000:" : "",
			 (int)(len < PORT_NAME_BYTES ? len : PORT_NAME_BYTES), device);

	return len > 0 && n < (int)PORT_NAME_BYTES;
}

static bool is_text(const char *s, size_t room)
{
	size_t len = strnlen(s, room);

	if (len == 0 || len == room)
		return false;
	for (size_t i = 0; i < len; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	return true;
}

/* Is ip an address that one host on a network of this prefix may have? */
static bool host_address(uint32_t ip, uint8_t prefix)
{
	struct frame_local l = {.ip = ~ip, .host = 0}; /* a network of its own */
	uint32_t host = ~frame_mask(prefix);

	if (!frame_host_ok(&l, ip))
		return false;
	return prefix >= 31 || ((ip & host) != 0 && (ip & host) != host);
}

static int check_address(const struct port_config *c, char err[PORT_ERR_BYTES])
{
	if (c->prefix > 32)
		return port_say(err, -EINVAL, "port %s: prefix length %u is above 32", c->name,
				c->prefix);
	if (!host_address(c->ip, c->prefix))
		return port_say(err, -EINVAL, "port %s: %u.%u.%u.%u/%u is no address of a host",
				c->name, c->ip >> 24, c->ip >> 16 & 255, c->ip >> 8 & 255,
				c->ip & 255, c->prefix);
	if (c->gateway == 0)
		return 0;
	if (!host_address(c->gateway, c->prefix) || c->gateway == c->ip ||
	    ((c->gateway ^ c->ip) & frame_mask(c->prefix)) != 0)
		return port_say(err, -EINVAL,
				"port %s: gateway %u.%u.%u.%u is no other host of its network",
				c->name, c->gateway >> 24, c->gateway >> 16 & 255,
				c->gateway >> 8 & 255, c->gateway & 255);
	return 0;
}

static int check_one(const struct port_config *c, unsigned i, char err[PORT_ERR_BYTES])
{
	char device[PORT_NAME_BYTES];

	if (!is_text(c->name, sizeof(c->name)))
		return port_say(err, -EINVAL,
				"port %u: its name must have 1 to %u visible characters", i,
				PORT_NAME_BYTES - 1);
	if (!is_text(c->device, sizeof(c->device)))
		return port_say(err, -EINVAL,
				"port %s: its device must have 1 to %u visible characters", c->name,
				PORT_DEVICE_BYTES - 1);
	if (!port_device_name(c->device, device))
		return port_say(err, -EINVAL,
				"port %s: the device name before the comma must have 1 to %u "
				"characters",
				c->name, PORT_NAME_BYTES - 1);
	if (c->mtu < PORT_MTU_MIN || c->mtu > PORT_MTU_MAX)
		return port_say(err, -EINVAL, "port %s: mtu %u is outside %u..%u", c->name, c->mtu,
				PORT_MTU_MIN, PORT_MTU_MAX);
	if (c->udp_base == 0 || c->udp_base + FRAME_AGENT_OFFSET > 65535)
		return port_say(err, -EINVAL, "port %s: udp_base %u is outside 1..%u", c->name,
				c->udp_base, 65535 - FRAME_AGENT_OFFSET);
	if (c->rx_desc > DESC_MAX || c->tx_desc > DESC_MAX)
		return port_say(err, -EINVAL, "port %s: more than %u descriptors of a queue",
				c->name, DESC_MAX);
	return check_address(c, err);
}

static int check_pair(const struct port_config *a, const struct port_config *b,
		      char err[PORT_ERR_BYTES])
{
	char da[PORT_NAME_BYTES], db[PORT_NAME_BYTES];

	if (strcmp(a->name, b->name) == 0)
		return port_say(err, -EINVAL, "port %s: there are two ports of this name", b->name);
	if (port_device_name(a->device, da) && port_device_name(b->device, db) &&
	    strcmp(da, db) == 0)
		return port_say(err, -EINVAL, "port %s: its device %s is already that of port %s",
				b->name, db, a->name);
	if (a->ip == b->ip)
		return port_say(err, -EINVAL, "port %s: its address is already that of port %s",
				b->name, a->name);
	return 0;
}

int port_configs_check(const struct port_config *c, unsigned n, char err[PORT_ERR_BYTES])
{
	int e = 0;

	if (n > PORTS_MAX)
		return port_say(err, -EINVAL, "%u ports are configured, at most %u are possible", n,
				PORTS_MAX);
	for (unsigned i = 0; i < n && !e; i++)
		e = check_one(&c[i], i, err);
	for (unsigned i = 0; i < n && !e; i++)
		for (unsigned j = 0; j < i && !e; j++)
			e = check_pair(&c[j], &c[i], err);
	return e;
}

/* The number of descriptors for a wish of `want`, 0 = default; 0 when the wish cannot be met. */
static uint16_t descriptors(uint16_t want, uint16_t min, uint16_t max, uint16_t align)
{
	uint32_t n = want ? want : PORT_DESC_DEFAULT;

	if (align > 1)
		n = (n + align - 1) / align * align;
	if (max == 0)
		max = DESC_MAX;
	if (want == 0 && n > max)
		n = max;
	if (want == 0 && n < min)
		n = min;
	return n >= min && n <= max ? (uint16_t)n : 0;
}

int port_plan(const struct port_config *c, const struct port_caps *caps, unsigned users,
	      uint32_t data_room, struct port_plan *plan, char err[PORT_ERR_BYTES])
{
	uint16_t rx_desc =
		descriptors(c->rx_desc, caps->rx_desc_min, caps->rx_desc_max, caps->rx_desc_align);
	uint16_t tx_desc =
		descriptors(c->tx_desc, caps->tx_desc_min, caps->tx_desc_max, caps->tx_desc_align);

	if (caps->max_rx_queues == 0 || caps->max_tx_queues == 0)
		return port_say(err, -ENOTSUP,
				"port %s: its device has %u receive and %u transmit "
				"queues, one of each is needed",
				c->name, caps->max_rx_queues, caps->max_tx_queues);
	if (rx_desc == 0)
		return port_say(err, -EINVAL, "port %s: rx_desc %u is outside %u..%u of its device",
				c->name, c->rx_desc, caps->rx_desc_min, caps->rx_desc_max);
	if (tx_desc == 0)
		return port_say(err, -EINVAL, "port %s: tx_desc %u is outside %u..%u of its device",
				c->name, c->tx_desc, caps->tx_desc_min, caps->tx_desc_max);
	if ((caps->mtu_max && c->mtu > caps->mtu_max) || c->mtu < caps->mtu_min)
		return port_say(err, -ENOTSUP, "port %s: mtu %u is outside %u..%u of its device",
				c->name, c->mtu, caps->mtu_min, caps->mtu_max);
	if (c->mtu + FRAME_ETH_BYTES > data_room)
		return port_say(err, -EINVAL,
				"port %s: mtu %u needs packet buffers of %u + %u + %u = %u bytes "
				"(headroom, Ethernet, mtu), they have %u",
				c->name, c->mtu, HEADROOM, FRAME_ETH_BYTES, c->mtu,
				HEADROOM + FRAME_ETH_BYTES + c->mtu, HEADROOM + data_room);
	*plan = (struct port_plan){
		.tx_udp_csum = caps->tx_udp_csum,
		.tx_multi_seg = caps->tx_multi_seg,
		.rx_ip_csum = caps->rx_ip_csum,
		.rx_udp_csum = caps->rx_udp_csum,
		.rx_partial = caps->rx_partial,
		.n_tx = (uint16_t)(users < caps->max_tx_queues ? users : caps->max_tx_queues),
		.rx_desc = rx_desc,
		.tx_desc = tx_desc,
	};
	return 0;
}
