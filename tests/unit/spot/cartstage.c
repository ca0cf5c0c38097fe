/* SPDX-License-Identifier: BSD-3-Clause */
/* See cartstage.h. */
#include "tests/unit/spot/cartstage.h"

#include "common/ids.h"

#include <stdio.h>

#define f test_rig

int cart_initialize, cart_rc;
bool cart_leaves_at_once;
uint64_t cart_closings, cart_deadline_ns;
enum spl_closing cart_reason;

static int on_log(struct spl_turn *t, void *state, const struct spl_message *m)
{
	char text[64];

	test_stage_runs++;
	snprintf(text, sizeof(text), "%.*s", (int)m->payload_bytes, (const char *)m->payload);
	fake_log(text);
	return m->is_request && spl_reply(t, SPL_CONTENT_TEXT, m->payload, m->payload_bytes)
		       ? SPL_FAIL(SPL_E_INTERNAL_FAILURE)
		       : SPL_DONE;
}

/* "ID PACKET TEXT" */
static void parse(const struct spl_message *m, struct spl_target *to, uint64_t *packet,
		  const char **text)
{
	static char id[32], name[32], rest[32], all[100];

	snprintf(all, sizeof(all), "%.*s", (int)m->payload_bytes, (const char *)m->payload);
	id[0] = name[0] = rest[0] = 0;
	CU_ASSERT_FATAL(sscanf(all, "%31s %31s %31[^\n]", id, name, rest) >= 2);
	CU_ASSERT_EQUAL(spl_target_set(to, id, strlen(id)), 0);
	CU_ASSERT_EQUAL(spl_target_set_instance(to, "cart"), 0);
	*packet = spl_packet_key(name, strlen(name));
	*text = rest;
}

static int on_other(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct spl_target to;
	const char *text;
	uint64_t packet;

	parse(m, &to, &packet, &text);
	cart_rc = spl_send(t, &to, packet, SPL_CONTENT_TEXT, text, (uint32_t)strlen(text));
	return SPL_DONE;
}

static int told(struct spl_turn *t, void *state, const struct spl_result *r, void *ctx)
{
	char text[32];

	snprintf(text, sizeof(text), "told %s", r->kind == SPL_OK ? "OK" : spl_error_name(r->kind));
	fake_log(text);
	return SPL_DONE;
}

static int on_tell(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct spl_target to;
	struct spl_call *call;
	const char *text;
	uint64_t packet;

	parse(m, &to, &packet, &text);
	cart_rc = spl_send_wait(t, &to, packet, SPL_CONTENT_TEXT, text, (uint32_t)strlen(text), 100,
				&call);
	if (cart_rc)
		return SPL_DONE;
	spl_call_then(t, call, told, NULL);
	return SPL_SUSPENDED;
}

static int asked(struct spl_turn *t, void *state, const struct spl_result *r, void *ctx)
{
	char text[96];
	int n = snprintf(text, sizeof(text), "%s %.*s",
			 r->kind == SPL_OK ? "OK" : spl_error_name(r->kind), (int)r->payload_bytes,
			 (const char *)r->payload);

	cart_rc = spl_reply(t, SPL_CONTENT_TEXT, text, (uint32_t)n);
	return SPL_DONE;
}

static int on_ask(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct spl_target to;
	struct spl_call *call;
	const char *text;
	uint64_t packet;

	parse(m, &to, &packet, &text);
	cart_rc = spl_request(t, &to, packet, SPL_CONTENT_TEXT, text, (uint32_t)strlen(text), 500,
			      SPL_WAIT_HOLD, &call);
	if (cart_rc)
		return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	spl_call_then(t, call, asked, NULL);
	return SPL_SUSPENDED;
}

static int on_leave(struct spl_turn *t, void *state, const struct spl_message *m)
{
	cart_rc = spl_close_self(t);
	return SPL_DONE;
}

static int on_hour(struct spl_turn *t, void *state, const struct spl_tick *k)
{
	return SPL_DONE;
}

static int on_timer(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct spl_timer timer;

	cart_rc = spl_timer_start(t, "hour", 4, 3600 * INT64_C(1000000000), on_hour, NULL, &timer);
	return SPL_DONE;
}

static int waited(struct spl_turn *t, void *state, const struct spl_result *r, void *ctx)
{
	return r->kind == SPL_OK ? SPL_DONE : SPL_FAIL(r->kind);
}

static int wait_for_nobody(struct spl_turn *t, enum spl_wait wait)
{
	struct spl_target to;
	struct spl_call *call;

	CU_ASSERT_EQUAL(spl_target_set(&to, "nobody", 6), 0);
	cart_rc = spl_request(t, &to, spl_packet_key("log", 3), SPL_CONTENT_TEXT, "", 0, 100000,
			      wait, &call);
	if (cart_rc)
		return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	spl_call_then(t, call, waited, NULL);
	return SPL_SUSPENDED;
}

static int on_yield(struct spl_turn *t, void *state, const struct spl_message *m)
{
	return wait_for_nobody(t, SPL_WAIT_YIELD);
}

static int on_initialize(struct spl_turn *t, void *state)
{
	fake_log("init");
	if (cart_leaves_at_once)
		cart_rc = spl_close_self(t);
	return cart_initialize == SPL_SUSPENDED ? wait_for_nobody(t, SPL_WAIT_HOLD)
						: cart_initialize;
}

static int on_closing(struct spl_turn *t, void *state, enum spl_closing reason,
		      uint64_t deadline_ns)
{
	char text[32];

	cart_closings++;
	cart_reason = reason;
	cart_deadline_ns = deadline_ns;
	snprintf(text, sizeof(text), "closing %d", reason);
	fake_log(text);
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {
	{"log", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_log},
	{"other", SPL_TAKES_SEND, on_other},
	{"ask", SPL_TAKES_REQUEST, on_ask},
	{"tell", SPL_TAKES_SEND, on_tell},
	{"leave", SPL_TAKES_SEND, on_leave},
	{"timer", SPL_TAKES_SEND, on_timer},
	{"yield", SPL_TAKES_SEND, on_yield},
};

#define CART_STAGE(name, kind_, type_) \
	const struct spl_stage name = { \
		.api = SPL_STAGE_API, \
		.size = sizeof(struct spl_stage), \
		.type = type_, \
		.kind = kind_, \
		.relocation = SPL_RELOCATION_RECREATE, \
		.state_bytes = 16, \
		.handlers = handlers, \
		.handler_count = T_COUNT(handlers), \
		.on_initialize = on_initialize, \
		.on_closing = on_closing, \
	}
CART_STAGE(cart_stage, SPL_KIND_INSTANCE, "cart");
CART_STAGE(cart_user, SPL_KIND_USER, "user");
CART_STAGE(cart_entry, SPL_KIND_ENTRY, "entry");

void cart_begin(unsigned lanes)
{
	test_begin(lanes);
	cart_initialize = SPL_DONE;
	cart_rc = 0;
	cart_closings = 0;
}

uint64_t cart_start(void)
{
	char id[256];
	uint64_t generation;
	struct spl_key key = f.activate_key;
	struct fake_lane *fl;

	snprintf(id, sizeof(id), "%.*s", f.activate_id.len, f.activate_id.b);
	generation = fake_prepare(&f, id, fake_stage(&cart_stage), NULL, 0);
	fake_run(&f);
	if (fake_answer(&f, SPOT_PREPARE)->verdict != SPOT_ACCEPTED) {
		fake_activated(&f, fake_answer(&f, SPOT_PREPARE)->error);
		return 0;
	}
	fl = &f.lane[spl_key_lane(&key, f.lanes)];
	spot_publish(fl->l, &key, generation, ++f.next_op, f.now);
	fake_activated(&f, SPL_OK);
	return generation;
}

void cart_close(const char *id, uint64_t generation, enum spl_closing reason)
{
	fake_close(&f, id, generation, reason, 0);
	fake_run(&f);
}
