/* SPDX-License-Identifier: BSD-3-Clause */
/* Device bring-up, state and statistics: see port.h. Agent only. */
#include "dataplane/port/port.h"

#include <rte_ethdev.h>

#include <errno.h>
#include <string.h>

int port_find_all(const struct port_config *c, unsigned n, uint16_t *ids, char err[PORT_ERR_BYTES])
{
	char name[RTE_ETH_NAME_MAX_LEN];
	unsigned extra = 0, i;
	uint16_t id;

	for (i = 0; i < n; i++) {
		if (!port_device_name(c[i].device, name) ||
		    rte_eth_dev_get_port_by_name(name, &ids[i]) != 0)
			return port_say(
				err, -ENODEV,
				"port %s: no such device: %s did not come up (its arguments "
				"may be wrong, or the driver missing)",
				c[i].name, c[i].device);
	}
	RTE_ETH_FOREACH_DEV(id)
	{
		for (i = 0; i < n && ids[i] != id; i++)
			;
		if (i < n || rte_eth_dev_get_name_by_port(id, name))
			continue;
		extra++;
		port_say(err, 0, "device %s came up, but no port uses it", name);
	}
	return (int)extra;
}

/* Devices whose frames may come straight from this machine's kernel. */
static bool is_kernel_device(const struct rte_eth_dev_info *info)
{
	return info->driver_name && (strcmp(info->driver_name, "net_af_packet") == 0 ||
				     strcmp(info->driver_name, "net_af_xdp") == 0);
}

static struct port_caps caps_of(const struct rte_eth_dev_info *info)
{
	const uint64_t udp = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;

	return (struct port_caps){
		.tx_udp_csum = (info->tx_offload_capa & udp) == udp,
		.tx_multi_seg = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS,
		.rx_ip_csum = info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM,
		.rx_udp_csum = info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_UDP_CKSUM,
		.rx_partial = is_kernel_device(info),
		.max_rx_queues = info->max_rx_queues,
		.max_tx_queues = info->max_tx_queues,
		.rx_desc_min = info->rx_desc_lim.nb_min,
		.rx_desc_max = info->rx_desc_lim.nb_max,
		.rx_desc_align = info->rx_desc_lim.nb_align,
		.tx_desc_min = info->tx_desc_lim.nb_min,
		.tx_desc_max = info->tx_desc_lim.nb_max,
		.tx_desc_align = info->tx_desc_lim.nb_align,
		.mtu_min = info->min_mtu,
		.mtu_max = info->max_mtu,
	};
}

/* What the plan asks of the device. Never MBUF_FAST_FREE: buffers are shared and of several pools.
 */
static struct rte_eth_conf conf_of(const struct port *p)
{
	struct rte_eth_conf conf = {.rxmode.mtu = p->config.mtu};

	if (p->plan.rx_ip_csum)
		conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
	if (p->plan.rx_udp_csum)
		conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
	if (p->plan.tx_multi_seg)
		conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (p->plan.tx_udp_csum)
		conf.txmode.offloads |=
			RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	return conf;
}

static int set_up_queues(struct port *p, const struct rte_eth_dev_info *info,
			 struct rte_mempool *rx_pool, char err[PORT_ERR_BYTES])
{
	struct rte_eth_txconf txconf = info->default_txconf;
	int socket = rte_eth_dev_socket_id(p->id), e;

	e = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &p->plan.rx_desc, &p->plan.tx_desc);
	if (e)
		return port_say(err, e, "port %s: descriptor counts refused: %s", p->config.name,
				rte_strerror(-e));
	e = rte_eth_rx_queue_setup(p->id, 0, p->plan.rx_desc, (unsigned)socket, NULL, rx_pool);
	if (e)
		return port_say(err, e, "port %s: receive queue 0 refused: %s", p->config.name,
				rte_strerror(-e));
	txconf.offloads = conf_of(p).txmode.offloads;
	for (uint16_t q = 0; q < p->plan.n_tx; q++) {
		e = rte_eth_tx_queue_setup(p->id, q, p->plan.tx_desc, (unsigned)socket, &txconf);
		if (e)
			return port_say(err, e, "port %s: transmit queue %u refused: %s",
					p->config.name, q, rte_strerror(-e));
	}
	return 0;
}

static int set_up_local(struct port *p, unsigned n_lanes, char err[PORT_ERR_BYTES])
{
	const struct port_config *c = &p->config;
	struct rte_ether_addr mac;
	int e = rte_eth_macaddr_get(p->id, &mac);

	if (e)
		return port_say(err, e, "port %s: cannot read its MAC address: %s", c->name,
				rte_strerror(-e));
	p->local = (struct frame_local){
		.prefix = c->prefix,
		.n_lanes = (uint8_t)n_lanes,
		.rx = p->plan.rx_partial ? FRAME_RX_L4_PARTIAL : 0,
		.ip = c->ip,
		.gateway = c->gateway,
		.udp_base = c->udp_base,
		.mtu = c->mtu,
	};
	memcpy(p->local.mac, mac.addr_bytes, sizeof(p->local.mac));
	frame_local_ready(&p->local);
	return 0;
}

int port_open(struct port *p, uint16_t id, const struct port_config *c, unsigned n_lanes,
	      struct rte_mempool *rx_pool, char err[PORT_ERR_BYTES])
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf;
	struct port_caps caps;
	uint32_t room = rte_pktmbuf_data_room_size(rx_pool) - RTE_PKTMBUF_HEADROOM;
	int e;

	memset(p, 0, sizeof(*p));
	p->id = id;
	p->config = *c;
	e = rte_eth_dev_info_get(id, &info);
	if (e)
		return port_say(err, e, "port %s: its device does not answer: %s", c->name,
				rte_strerror(-e));
	caps = caps_of(&info);
	e = port_plan(c, &caps, n_lanes + 1, room, &p->plan, err);
	if (e)
		return e;
	conf = conf_of(p);
	e = rte_eth_dev_configure(id, 1, p->plan.n_tx, &conf);
	if (e)
		return port_say(err, e,
				"port %s: its device refuses 1 receive and %u transmit "
				"queues with mtu %u: %s",
				c->name, p->plan.n_tx, c->mtu, rte_strerror(-e));
	e = set_up_queues(p, &info, rx_pool, err);
	if (!e)
		e = set_up_local(p, n_lanes, err);
	if (e)
		rte_eth_dev_close(id);
	else
		p->is_open = true;
	return e;
}

int port_start(struct port *p, char err[PORT_ERR_BYTES])
{
	int e = rte_eth_dev_start(p->id);

	if (e)
		return port_say(err, e, "port %s: its device does not start: %s", p->config.name,
				rte_strerror(-e));
	p->is_started = true;
	p->has_done_cleanup = rte_eth_tx_done_cleanup(p->id, 0, 0) != -ENOTSUP;
	port_link_poll(p);
	return 0;
}

void port_stop(struct port *p)
{
	if (!p || !p->is_started)
		return;
	rte_eth_dev_stop(p->id);
	p->is_started = false;
	atomic_store_explicit(&p->link_up, false, memory_order_relaxed);
}

void port_close(struct port *p)
{
	if (!p || !p->is_open)
		return;
	port_stop(p);
	rte_eth_dev_close(p->id);
	p->is_open = false;
}

bool port_link_poll(struct port *p)
{
	struct rte_eth_link link;
	bool up;

	if (rte_eth_link_get_nowait(p->id, &link))
		return false;
	up = link.link_status == RTE_ETH_LINK_UP;
	/* relaxed: a lane may see it a pass later; nothing else hangs on it */
	return atomic_exchange_explicit(&p->link_up, up, memory_order_relaxed) != up;
}

int port_stats(const struct port *p, uint64_t out[SPL_P_COUNT])
{
	struct rte_eth_stats s;
	int e = rte_eth_stats_get(p->id, &s);

	if (e)
		return e;
	out[SPL_P_RX_FRAMES] = s.ipackets;
	out[SPL_P_RX_BYTES] = s.ibytes;
	out[SPL_P_RX_MISSED] = s.imissed;
	out[SPL_P_RX_ERRORS] = s.ierrors;
	out[SPL_P_RX_NOMBUF] = s.rx_nombuf;
	out[SPL_P_TX_FRAMES] = s.opackets;
	out[SPL_P_TX_BYTES] = s.obytes;
	out[SPL_P_TX_ERRORS] = s.oerrors;
	out[SPL_P_LINK_UP] = atomic_load_explicit(&p->link_up, memory_order_relaxed);
	return 0;
}
