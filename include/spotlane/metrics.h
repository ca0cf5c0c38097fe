/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics: the instruments of this node and what their labels may be (S-MET). One list, from which
 * `spotctl metrics show` and docs/counters.md are made; and what lanes measure for them beside
 * their counters.
 */
#ifndef SPOTLANE_METRICS_H
#define SPOTLANE_METRICS_H

#include <stdint.h>

/* X(SYMBOL, "name", "kind", "unit", "labels") */
#define SPL_METRICS(X) \
	X(INBOUND_HWM, "spotlane.host.inbound.application_hwm", "observable", "By", "") \
	X(INBOUND_PENDING, "spotlane.host.inbound.pending_payload", "observable", "By", "state") \
	X(INBOUND_PAUSED, "spotlane.host.inbound.receive_paused", "observable", "{state}", "") \
	X(COMPLETION_PENDING, "spotlane.host.completion.pending_sends", "observable", "{request}", \
	  "") \
	X(COMPLETION_LIMIT, "spotlane.host.completion.send_limit", "observable", "{request}", "") \
	X(REQUESTS_INFLIGHT, "spotlane.mesh_node.requests.inflight", "updown", "{request}", \
	  "mesh_name surface") \
	X(REQUEST_DURATION, "spotlane.mesh_node.request.duration", "histogram", "s", \
	  "mesh_name surface outcome") \
	X(REQUEST_TIMEOUTS, "spotlane.mesh_node.request.timeouts", "counter", "{request}", \
	  "mesh_name surface") \
	X(DROPPED, "spotlane.mesh_node.messages.dropped", "counter", "{message}", \
	  "mesh_name surface message_kind reason") \
	X(SPOT_COUNT, "spotlane.spot.count", "updown", "{spot}", "mesh_name spot_kind") \
	X(CAPACITY_ACTIVE, "spotlane.object.capacity.active", "observable", "{object}", \
	  "mesh_name capacity_scope") \
	X(CAPACITY_RESERVED, "spotlane.object.capacity.reserved", "observable", "{object}", \
	  "mesh_name capacity_scope") \
	X(CAPACITY_LIMIT, "spotlane.object.capacity.limit", "observable", "{object}", \
	  "mesh_name capacity_scope") \
	X(TYPE_ACTIVE, "spotlane.spot.type.capacity.active", "observable", "{spot}", \
	  "mesh_name spot_kind stable_type") \
	X(TYPE_RESERVED, "spotlane.spot.type.capacity.reserved", "observable", "{spot}", \
	  "mesh_name spot_kind stable_type") \
	X(TYPE_LIMIT, "spotlane.spot.type.capacity.limit", "observable", "{spot}", \
	  "mesh_name spot_kind stable_type") \
	X(ACTIVATION_ACTIVE, "spotlane.object.activation.active", "observable", "{activation}", \
	  "mesh_name") \
	X(ACTIVATION_LIMIT, "spotlane.object.activation.limit", "observable", "{activation}", \
	  "mesh_name") \
	X(ACTIVATIONS, "spotlane.instance_spot.activations", "counter", "{activation}", \
	  "mesh_name instance_spot_type outcome") \
	X(ACTIVATION_DURATION, "spotlane.instance_spot.activation.duration", "histogram", "s", \
	  "mesh_name instance_spot_type outcome") \
	X(INSTANCE_PENDING, "spotlane.instance_spot.pending.messages", "observable", "{message}", \
	  "mesh_name instance_spot_type") \
	X(INSTANCE_PENDING_BYTES, "spotlane.instance_spot.pending.bytes", "observable", "By", \
	  "mesh_name instance_spot_type") \
	X(CLAIM_CONFLICTS, "spotlane.instance_spot.claim.conflicts", "counter", "{claim}", \
	  "mesh_name instance_spot_type reason") \
	X(HOST_STATE, "spotlane.host.state", "observable", "{runtime}", "state") \
	X(SHUTDOWN_DURATION, "spotlane.host.shutdown.duration", "histogram", "s", "outcome") \
	X(SHUTDOWN_FORCED, "spotlane.host.shutdown.forced", "counter", "{shutdown}", "reason") \
	X(STORE_ERRORS, "spotlane.location.store.errors", "counter", "{error}", "operation") \
	X(RENEW_FAILURES, "spotlane.location.owner_lease.renew.failures", "counter", "{renewal}", \
	  "scope_kind scope_name") \
	X(RENEW_LATENESS, "spotlane.location.owner_lease.renew.lateness", "histogram", "s", \
	  "scope_kind scope_name") \
	X(EVENTS_OVERFLOW, "spotlane.observability.events.overflow", "counter", "{event}", "source")

enum spl_metric {
#define SPL_X(sym, name, kind, unit, labels) SPL_M_##sym,
	SPL_METRICS(SPL_X)
#undef SPL_X
		SPL_M_COUNT
};

/* X(SYMBOL, "name"): values of `outcome` of a request, of `surface` and `reason` of a drop. */
#define SPL_REQUEST_OUTCOMES(X) \
	X(SUCCEEDED, "succeeded") \
	X(FAILED, "failed") \
	X(TIMED_OUT, "timed_out") \
	X(CANCELLED, "cancelled") \
	X(SHUTDOWN, "shutdown")
#define SPL_DROP_SURFACES(X) X(NODE, "node") X(SPOT, "spot") X(INSTANCE_SPOT, "instance_spot")
#define SPL_DROP_REASONS(X) \
	X(NO_HANDLER, "no_handler") \
	X(DECODE_ERROR, "decode_error") \
	X(BACKPRESSURE, "backpressure") \
	X(STALE_TARGET, "stale_target") \
	X(SHUTDOWN, "shutdown")

/* Of the start of an Instance Spot, and of a conflict that it met. */
#define SPL_ACTIVATION_OUTCOMES(X) \
	X(READY, "ready") \
	X(REJECTED, "rejected") \
	X(CONFLICT, "conflict") \
	X(TIMED_OUT, "timed_out") \
	X(SHUTDOWN, "shutdown") \
	X(STORE_FAILURE, "store_failure") \
	X(FENCED, "fenced")
#define SPL_CLAIM_REASONS(X) \
	X(AUTHORITY, "authority") \
	X(SPOT_KIND, "spot_kind") \
	X(SPOT_TYPE, "spot_type") \
	X(CLOSING, "closing")

#define SPL_X(sym, name) SPL_AO_##sym,
enum spl_activation_outcome { SPL_ACTIVATION_OUTCOMES(SPL_X) SPL_AO_COUNT };
#undef SPL_X
#define SPL_X(sym, name) SPL_CR_##sym,
enum spl_claim_reason { SPL_CLAIM_REASONS(SPL_X) SPL_CR_COUNT };
#undef SPL_X
#define SPL_X(sym, name) SPL_RO_##sym,
enum spl_request_outcome { SPL_REQUEST_OUTCOMES(SPL_X) SPL_RO_COUNT };
#undef SPL_X
#define SPL_X(sym, name) SPL_DS_##sym,
enum spl_drop_surface { SPL_DROP_SURFACES(SPL_X) SPL_DS_COUNT };
#undef SPL_X
#define SPL_X(sym, name) SPL_DR_##sym,
enum spl_drop_reason { SPL_DROP_REASONS(SPL_X) SPL_DR_COUNT };
#undef SPL_X

/* Upper bounds of the buckets of a duration, microseconds; the last one has none. */
#define SPL_DURATION_BOUNDS(X) \
	X(100) X(500) X(1000) X(5000) X(10000) X(50000) X(100000) X(500000) X(1000000) X(5000000)
#define SPL_X(us) +1
enum { SPL_DURATION_BUCKETS = SPL_DURATION_BOUNDS(SPL_X) + 1 };
struct spl_histogram {
	uint64_t count, sum_ns, bucket[SPL_DURATION_BUCKETS];
};
#undef SPL_X

/* The bucket of a duration. */
static inline unsigned spl_duration_bucket(uint64_t ns)
{
#define SPL_X(us) us *UINT64_C(1000),
	static const uint64_t bounds[] = {SPL_DURATION_BOUNDS(SPL_X)};
#undef SPL_X
	unsigned i = 0;

	while (i < SPL_DURATION_BUCKETS - 1 && ns > bounds[i])
		i++;
	return i;
}

/* What a lane measures beside its counters. One-way messages that were dropped, multicast left out;
 * requests of its handlers, by how they ended. */
struct spl_measures {
	uint64_t dropped[SPL_DS_COUNT][SPL_DR_COUNT];
	struct spl_histogram request[SPL_RO_COUNT];
};

#endif
