/* SPDX-License-Identifier: BSD-3-Clause */
/* What a port can do, and what is decided from it. Pure: no rte_ header; the agent calls it at
 * start, tests call it with every combination of a made-up device.
 */
#ifndef SPL_PORT_PLAN_H
#define SPL_PORT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PORT_NAME_BYTES	  64u  /* with the ending NUL */
#define PORT_DEVICE_BYTES 512u /* with the ending NUL */
#define PORT_ERR_BYTES	  320u /* holds every message of this room */
#define PORTS_MAX	  16u
#define PORT_MTU_MIN	  576u
#define PORT_MTU_MAX	  9216u
#define PORT_DESC_DEFAULT 1024u

/* One port as control sends it; plain data. */
struct port_config {
	char name[PORT_NAME_BYTES];	/* the operator's name */
	char device[PORT_DEVICE_BYTES]; /* "0000:01:00.0" or "net_x0,key=value" */
	uint32_t ip, gateway;		/* host byte order; gateway 0 = none */
	uint8_t prefix;
	uint16_t mtu;		   /* bytes of an IP datagram */
	uint16_t udp_base;	   /* first UDP port, see frame/view.h */
	uint16_t rx_desc, tx_desc; /* 0: PORT_DESC_DEFAULT */
};

/* From rte_eth_dev_info_get(), or made up. */
struct port_caps {
	bool tx_udp_csum, tx_multi_seg, rx_ip_csum, rx_udp_csum;
	bool rx_partial; /* may hand over frames of the local kernel with unfinished UDP sums */
	uint16_t max_rx_queues, max_tx_queues;
	uint16_t rx_desc_min, rx_desc_max, rx_desc_align;
	uint16_t tx_desc_min, tx_desc_max, tx_desc_align;
	uint16_t mtu_min, mtu_max; /* 0: the device does not say */
};

/* What is asked of the device; the rest is done in software. */
struct port_plan {
	bool tx_udp_csum, tx_multi_seg, rx_ip_csum, rx_udp_csum, rx_partial;
	uint16_t n_tx; /* transmit queues, at most one a user; see tx.h for who shares */
	uint16_t rx_desc, tx_desc;
};

/* Writes a sentence into err and returns code. For the port rooms. */
int port_say(char err[PORT_ERR_BYTES], int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* True for a PCI address ("[dddd:]bb:dd.f"); everything else is a vdev. */
bool port_is_pci(const char *device);

/* The name that DPDK gives the device: the part before the first comma, a PCI address with its
 * domain. false: longer than PORT_NAME_BYTES - 1, or empty. */
bool port_device_name(const char *device, char out[PORT_NAME_BYTES]);

/* Checks n configurations against themselves and each other: names and devices unique (devices by
 * their name part only), addresses usable, one address per port, MTU and UDP range in bounds. 0, or
 * -EINVAL and a sentence in err that names the port. */
int port_configs_check(const struct port_config *c, unsigned n, char err[PORT_ERR_BYTES])
	__attribute__((warn_unused_result));

/* Decides for one port. users: lanes + 1 (the agent). data_room: bytes of a packet buffer without
 * its headroom. 0, or -ENOTSUP / -EINVAL and a sentence that names the port. */
int port_plan(const struct port_config *c, const struct port_caps *caps, unsigned users,
	      uint32_t data_room, struct port_plan *plan, char err[PORT_ERR_BYTES])
	__attribute__((warn_unused_result));

#endif
