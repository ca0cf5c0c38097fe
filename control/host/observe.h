/* SPDX-License-Identifier: BSD-3-Clause */
/* What of the host can be observed: status, metrics, totals by stable type, trace. Inside of the
 * host: see host_priv.h. Loop thread only.
 */
#ifndef SPL_CONTROL_HOST_OBSERVE_H
#define SPL_CONTROL_HOST_OBSERVE_H

#include "common/dp.h"
#include "control/authority/authority.h"
#include "control/host/ends.h"
#include "control/server/server.h"
#include "control/store/store.h"

#include <spotlane/metrics.h>
#include <spotlane/stats.h>
#include <sys/queue.h>

struct host;
struct host_observer;

#define HOST_STORE_OPS 4 /* read, compare_exchange, lease_renew, release */

/* Running totals of control, for the metrics. */
struct host_measured {
	uint64_t store_errors[HOST_STORE_OPS], renew_failures;
	uint64_t forced, stop_begun;
	struct spl_histogram renew_late, shutdown[2]; /* stopped, force_stopped */
};

/* How starts of Instance Spots of one type ended, and which conflicts they met. */
struct host_activations {
	struct spl_histogram ended[SPL_AO_COUNT];
	uint64_t conflicts[SPL_CR_COUNT];
};

#define HOST_LOOK_MS 100 /* between two looks at observers whose time is over */

/* What makes a status another one; no gaps, because it is compared as bytes. */
struct host_status_key {
	uint64_t deadline;
	uint8_t state; /* enum dp_host */
	uint8_t lease, up;
	uint8_t shutdown; /* 1 stopped, 2 by force */
	uint32_t zero;
};

struct host_status {
	struct host_status_key now;
	uint64_t sequence;
	struct host_ends ends;
	TAILQ_HEAD(, host_observer) observers;
	uv_timer_t timer;
};

/* ---- trace.c ---- */
void host_trace_show(struct mgmt_call *call, const json_t *params, void *ctx);
void host_trace_set_level(struct mgmt_call *call, const json_t *params, void *ctx);
void host_trace_set_sample(struct mgmt_call *call, const json_t *params, void *ctx);

/* ---- show.c ---- */
/* As one of the host states of S-DRAIN-1. */
enum dp_host host_dp_state(const struct host *h, const struct auth_status *s);

/* ---- status.c ---- */
void host_status_show(struct mgmt_call *call, const json_t *params, void *ctx);
/* Something may have changed: numbers the status and tells its observers if so. */
void host_status_look(struct host *h);
void host_status_open(struct host *h);
void host_status_close(struct host *h);

/* ---- metrics.c ---- */
/* Payload of accepted work, all and what is active of it: never more. */
void host_inbound(const struct host *h, uint64_t *all, uint64_t *active);
/* Replies of all lanes that wait to be sent, and how many could before requests wait. */
uint64_t host_replies_waiting(const struct host *h);
uint64_t host_replies_max(const struct host *h);
void host_metrics_show(struct mgmt_call *call, const json_t *params, void *ctx);
void host_measure(struct spl_histogram *m, uint64_t ns);
/* What a store batch came to. */
void host_measure_store(struct host *h, const struct store_batch *b);

/* ---- stages.c ---- */
void host_stage_show(struct mgmt_call *call, const json_t *params, void *ctx);
/* One total of stage `index` over all lanes; of a maximum, the largest. */
uint64_t host_stage_total(const struct host *h, uint32_t index, enum spl_stage_counter c);
const char *host_kind_name(uint32_t kind);

#endif
