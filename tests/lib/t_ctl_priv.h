/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the fake dataplane: t_ctl.c is the socket, t_ctl_obj.c what it answers. */
#ifndef SPL_T_CTL_PRIV_H
#define SPL_T_CTL_PRIV_H

#include "tests/lib/t_ctl.h"

#define T_CTL_BUCKETS 65536

struct t_ctl {
	struct t_ctl_options o;
	char path[108];
	int lock_fd, listen_fd, conn;
	bool deaf, hello_by_hand, hold_closes;
	struct t_ctl_seen *seen; /* shared memory */
	struct t_ctl_seen seen_entry;
	struct dp_identity id; /* numbers only */
	char rid[256], owner_id[256], entry_id[256];
	uint64_t config_hash;
	struct dp_rx *rx;
	struct dp_tx tx;
	uint8_t out[DP_PACKET_MAX];
	struct pack_writer w;
	int stats_fd;
	struct spl_stats *stats;
	uint64_t corr;
	t_ctl_reply_fn on_reply;
	void *on_reply_ctx;
	t_ctl_packet_fn on_packet;
	void *on_packet_ctx;
	struct t_ctl_object *bucket[T_CTL_BUCKETS];
	struct t_ctl_close {
		uint64_t corr;
		struct dp_obj_close m;
		struct spl_name id;
		struct t_ctl_close *next;
	} * closes;
};

/* "twin" is an Instance type, all others are of User Spots. */
enum spl_kind t_ctl_kind_of(const char *type);
uint64_t t_ctl_now(const struct t_ctl *f);
void t_ctl_object_free(struct t_ctl *f, struct t_ctl_object *o);

/* Serves one request or event; a reply to the test goes to on_reply. */
void t_ctl_serve(struct t_ctl *f, const struct dp_header *h, struct pack_reader *r, int fd);

#endif
