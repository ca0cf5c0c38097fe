/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the client that need no node: configuration, targets, metadata, call table, route
 * cache. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "client/client.h"
#include "tests/lib/t_failalloc.h"
#include "tests/lib/t_main.h"

static int try_config(void (*spoil)(struct spl_client_config *conf))
{
	struct spl_client_config conf;
	struct client_config out;

	spl_client_config_init(&conf);
	conf.address = "127.0.0.1";
	spoil(&conf);
	return client_config_read(&out, &conf);
}

#define SPOILED(name, statement) \
	static void name(struct spl_client_config *conf) \
	{ \
		statement; \
	}
SPOILED(not_spoiled, )
SPOILED(other_size, conf->size--)
SPOILED(no_address, conf->address = NULL)
SPOILED(bad_address, conf->address = "10.0.0.256")
SPOILED(a_name, conf->address = "localhost")
SPOILED(no_port, conf->udp_base = 0)
SPOILED(port_too_high, conf->udp_base = 65535 - 255)
SPOILED(highest_port, conf->udp_base = 65535 - 256)
SPOILED(no_mesh, conf->mesh = "")
SPOILED(mesh_no_utf8, conf->mesh = "\xff")
SPOILED(no_prefix, conf->name = "")
SPOILED(bad_prefix, conf->name = "a b")
SPOILED(long_prefix,
	conf->name = "0123456789012345678901234567890123456789012345678901234567890123x")
SPOILED(no_calls, conf->calls_max = 0)
SPOILED(many_calls, conf->calls_max = CALLS_MAX / 2 + 1)
SPOILED(no_waiters, conf->waiters_max = 0)
SPOILED(many_waiters, conf->waiters_max = conf->calls_max + 1)
SPOILED(no_bytes, conf->waiting_bytes = 0)
SPOILED(no_window, conf->window_bytes = 0)
SPOILED(no_routes, conf->routes_max = 0)
SPOILED(big_message, conf->message_max = SPL_MESSAGE_BYTES_CAP + 1)

static void test_config_ranges(void)
{
	static void (*const bad[])(struct spl_client_config *) = {
		other_size,    no_address, bad_address,	 a_name,      no_port,
		port_too_high, no_mesh,	   mesh_no_utf8, no_prefix,   bad_prefix,
		long_prefix,   no_calls,   many_calls,	 no_waiters,  many_waiters,
		no_bytes,      no_window,  no_routes,	 big_message,
	};

	CU_ASSERT_EQUAL(try_config(not_spoiled), 0);
	CU_ASSERT_EQUAL(try_config(highest_port), 0);
	for (size_t i = 0; i < T_COUNT(bad); i++)
		CU_ASSERT_EQUAL(try_config(bad[i]), -EINVAL);
}

static void test_timeouts_round_up_and_have_a_range(void)
{
	static const int64_t bad[] = {0, -1, INT64_MIN, INT64_MAX, ((int64_t)INT_MAX + 1) * 1000};
	struct spl_client_config conf;
	struct client_config out;

	spl_client_config_init(&conf);
	conf.address = "127.0.0.1";
	CU_ASSERT_EQUAL(client_config_read(&out, &conf), 0);
	CU_ASSERT_EQUAL(out.send_ns, 1000000000);
	CU_ASSERT_EQUAL(out.request_ns, 30000000000);
	conf.send_timeout_us = 200;
	CU_ASSERT_EQUAL(client_config_read(&out, &conf), 0);
	CU_ASSERT_EQUAL(out.send_ns, 1000000);
	conf.send_timeout_us = (int64_t)INT_MAX * 1000;
	CU_ASSERT_EQUAL(client_config_read(&out, &conf), 0);
	for (size_t i = 0; i < T_COUNT(bad); i++) {
		conf.send_timeout_us = bad[i];
		CU_ASSERT_EQUAL(client_config_read(&out, &conf), -EINVAL);
		conf.send_timeout_us = 1;
		conf.request_timeout_us = bad[i];
		CU_ASSERT_EQUAL(client_config_read(&out, &conf), -EINVAL);
		conf.request_timeout_us = 1;
		conf.create_timeout_us = bad[i];
		CU_ASSERT_EQUAL(client_config_read(&out, &conf), -EINVAL);
		conf.create_timeout_us = 1;
	}
}

static void test_targets_take_legal_ids_only(void)
{
	struct spl_client_target t;
	char id[256];

	memset(id, 'x', sizeof(id));
	CU_ASSERT_EQUAL(spl_client_target_set(&t, id, 255), 0);
	CU_ASSERT_EQUAL(t.id.len, 255);
	CU_ASSERT_EQUAL(spl_client_target_set(&t, id, 256), -EINVAL);
	CU_ASSERT_EQUAL(spl_client_target_set(&t, id, 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_client_target_set(&t, "\xc3\x28", 2), -EINVAL);
	CU_ASSERT_EQUAL(spl_client_target_set(&t, "a\0b", 3), 0);
}

static void test_metadata_last_value_wins(void)
{
	uint8_t b[SPL_METADATA_BYTES_MAX];
	struct pack_bytes key, value;
	char big[1100];
	uint32_t used = 0, pos = 0;

	memset(big, 'v', sizeof(big));
	big[1099] = '\0';
	CU_ASSERT_EQUAL(spl_client_metadata_put(b, &used, "k", "one"), 0);
	CU_ASSERT_EQUAL(spl_client_metadata_put(b, &used, "l", "x"), 0);
	CU_ASSERT_EQUAL(spl_client_metadata_put(b, &used, "k", "two"), 0);
	CU_ASSERT_EQUAL(used, 2 * 4 + 3 + 1);
	CU_ASSERT_EQUAL(spl_client_metadata_put(b, &used, "m", big), -EMSGSIZE);
	CU_ASSERT_EQUAL(spl_client_metadata_put(b, &used, "", "x"), -EINVAL);
	CU_ASSERT_EQUAL(spl_client_metadata_put(b, &used, "n", "\xff"), -EINVAL);
	CU_ASSERT_EQUAL(used, 2 * 4 + 3 + 1);
	CU_ASSERT_EQUAL(wire_meta_check(b, used), 0);
	CU_ASSERT_EQUAL(wire_meta_next(b, used, &pos, &key, &value), 1);
	CU_ASSERT(value.len == 3 && memcmp(value.p, "two", 3) == 0);
	CU_ASSERT_EQUAL(wire_meta_next(b, used, &pos, &key, &value), 1);
	CU_ASSERT_EQUAL(wire_meta_next(b, used, &pos, &key, &value), 0);
}

static void test_handles_are_never_used_twice(void)
{
	struct calls c;
	struct call out;
	uint64_t last = 0;
	bool grows = true, found = false;

	CU_ASSERT_EQUAL_FATAL(calls_init(&c, 8), 0);
	for (uint32_t i = 0; i < 10000000; i++) {
		struct call *call = calls_add(&c, CALL_REQUEST, i);
		uint64_t id = call->id;

		grows &= id >> 20 > last >> 20 && id != 0;
		found |= calls_find(&c, last) != NULL;
		calls_end(&c, call, SPL_OK, NULL);
		calls_take_ended(&c, &out);
		last = id;
	}
	CU_ASSERT_TRUE(grows);
	CU_ASSERT_FALSE(found);
	CU_ASSERT_EQUAL(c.used, 0);
	calls_fini(&c);
}

static void test_call_table_is_bounded(void)
{
	struct calls c;
	struct call *call[4], out;

	CU_ASSERT_EQUAL(calls_init(&c, 0), -EINVAL);
	CU_ASSERT_EQUAL(calls_init(&c, CALLS_MAX + 1), -EINVAL);
	CU_ASSERT_EQUAL_FATAL(calls_init(&c, 4), 0);
	for (int i = 0; i < 4; i++)
		call[i] = calls_add(&c, CALL_SEND, 5);
	CU_ASSERT_PTR_NULL(calls_add(&c, CALL_SEND, 5));
	/* An ended call keeps its slot until its callback has run. */
	calls_end(&c, call[2], SPL_OK, NULL);
	CU_ASSERT_PTR_NULL(calls_add(&c, CALL_SEND, 5));
	CU_ASSERT_PTR_NULL(calls_find(&c, call[2]->id));
	CU_ASSERT_PTR_EQUAL(calls_known(&c, call[2]->id), call[2]);
	CU_ASSERT_TRUE(calls_take_ended(&c, &out));
	CU_ASSERT_FALSE(calls_take_ended(&c, &out));
	CU_ASSERT_PTR_NOT_NULL(calls_add(&c, CALL_SEND, 5));
	calls_fini(&c);
}

/* Against a model: the smallest time of a plain array. */
static void test_timers_come_in_order(void)
{
	struct t_rand r = {t_seed()};
	struct call *live[64] = {NULL};
	struct calls c;
	struct call out;
	uint64_t id;

	CU_ASSERT_EQUAL_FATAL(calls_init(&c, 64), 0);
	for (int step = 0; step < 200000; step++) {
		uint32_t i = t_rand_below(&r, 64), what = t_rand_below(&r, 3);
		uint64_t min = UINT64_MAX;

		if (!live[i])
			live[i] = calls_add(&c, CALL_REQUEST, t_rand_below(&r, 1000));
		else if (what)
			calls_due(&c, live[i], t_rand_below(&r, 1000));
		if (what == 0 && live[i]) {
			id = live[i]->id;
			calls_end(&c, live[i], SPL_OK, NULL);
			CU_ASSERT_TRUE(calls_take_ended(&c, &out) && out.id == id);
			live[i] = NULL;
		}
		for (int j = 0; j < 64; j++)
			min = live[j] && live[j]->due_ns < min ? live[j]->due_ns : min;
		if (calls_next(&c) != min) {
			CU_ASSERT_EQUAL_FATAL(calls_next(&c), min);
		}
	}
	calls_fini(&c);
}

static struct spl_key key_of(uint32_t n)
{
	return spl_spot_key(&n, sizeof(n));
}

static void test_oldest_route_makes_room(void)
{
	struct routes r;
	struct spl_key key;
	struct route *e;

	CU_ASSERT_EQUAL(routes_init(&r, 0, 1), -EINVAL);
	CU_ASSERT_EQUAL_FATAL(routes_init(&r, 3, 1), 0);
	for (uint32_t i = 0; i < 3; i++) {
		key = key_of(i);
		e = routes_get(&r, &key);
		CU_ASSERT_PTR_NOT_NULL_FATAL(e);
		routes_ask(&r, e);
		routes_answer(&r, e, 1000, (uint16_t)i, i + 7);
	}
	key = key_of(0);
	CU_ASSERT_TRUE(routes_usable(&r, routes_find(&r, &key), 999)); /* 1 is the oldest now */
	key = key_of(3);
	CU_ASSERT_PTR_NOT_NULL(routes_get(&r, &key));
	key = key_of(1);
	CU_ASSERT_PTR_NULL(routes_find(&r, &key));
	key = key_of(0);
	e = routes_find(&r, &key);
	CU_ASSERT_PTR_NOT_NULL_FATAL(e);
	CU_ASSERT_EQUAL(e->generation, 7);
	CU_ASSERT_FALSE(routes_usable(&r, e, 1000));
	routes_fini(&r);
}

static void test_asked_routes_are_not_pushed_out(void)
{
	struct spl_key key[3] = {key_of(0), key_of(1), key_of(2)};
	struct routes r;
	struct route *e[2];

	CU_ASSERT_EQUAL_FATAL(routes_init(&r, 2, 1), 0);
	for (uint32_t i = 0; i < 2; i++) {
		e[i] = routes_get(&r, &key[i]);
		routes_ask(&r, e[i]);
	}
	CU_ASSERT_PTR_NULL(routes_get(&r, &key[2]));
	routes_drop(&r, e[0]); /* stays: it is asked for */
	CU_ASSERT_PTR_EQUAL(routes_find(&r, &key[0]), e[0]);
	routes_answer(&r, e[0], 0, 0, 0); /* nothing to keep */
	CU_ASSERT_PTR_NULL(routes_find(&r, &key[0]));
	CU_ASSERT_PTR_NOT_NULL(routes_get(&r, &key[2]));
	routes_answer(&r, e[1], 10, 0, 1);
	routes_drop_all(&r);
	CU_ASSERT_EQUAL(r.used, 0);
	routes_fini(&r);
}

static void test_every_failed_allocation_is_an_error(void)
{
	struct spl_client_config conf;
	struct spl_client *c;
	int err;

	spl_client_config_init(&conf);
	conf.address = "127.0.0.1";
	for (unsigned n = 1; t_fail_more(&n); n++) {
		c = NULL;
		t_fail_at(n);
		err = spl_client_open(&conf, &c);
		t_fail_stop();
		CU_ASSERT_EQUAL(err, t_fail_hit() ? -ENOMEM : 0);
		CU_ASSERT_EQUAL(c != NULL, err == 0);
		CU_ASSERT_EQUAL(spl_client_close(c, 0), 0);
	}
}

static const struct t_case cases[] = {
	T(test_config_ranges, "S-ERR-2"),
	T(test_timeouts_round_up_and_have_a_range, "S-LIM-8", "S-DIR-7"),
	T(test_targets_take_legal_ids_only, "S-ID-1", "S-ID-3", "S-CF-3"),
	T(test_metadata_last_value_wins, "S-META-1"),
	T(test_handles_are_never_used_twice),
	T(test_call_table_is_bounded),
	T(test_timers_come_in_order),
	T(test_oldest_route_makes_room, "S-ADDR-3"),
	T(test_asked_routes_are_not_pushed_out),
	T(test_every_failed_allocation_is_an_error),
};

int main(int argc, char **argv)
{
	static const struct t_suite suites[] = {T_SUITE("client_parts", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
