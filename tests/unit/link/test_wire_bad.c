/* SPDX-License-Identifier: BSD-3-Clause */
/* Message headers, metadata and control bodies cut at every byte and spoiled in every field.
 */
#include "common/siphash.h"
#include "common/wire_msg.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include "vectors.h"

#include <stdio.h>
#include <stdlib.h>

static struct pack_bytes text(const char *s)
{
	return (struct pack_bytes){s, (uint32_t)strlen(s)};
}

static int get_id(const uint8_t *p, size_t len)
{
	struct pack_bytes id;
	return wire_id_get(&id, p, len);
}

static int get_create(const uint8_t *p, size_t len)
{
	struct wire_create c;
	return wire_create_get(&c, p, len);
}

static int get_create_reply(const uint8_t *p, size_t len)
{
	struct wire_create_reply c;
	return wire_create_reply_get(&c, p, len);
}

static int get_find_reply(const uint8_t *p, size_t len)
{
	struct wire_ref ref;
	bool found;
	return wire_find_reply_get(&ref, &found, p, len);
}

static int get_close(const uint8_t *p, size_t len)
{
	struct wire_ref ref;
	uint64_t op;
	return wire_close_get(&op, &ref, p, len);
}

static int get_close_reply(const uint8_t *p, size_t len)
{
	bool closed;
	return wire_close_reply_get(&closed, p, len);
}

static int get_route(const uint8_t *p, size_t len)
{
	struct wire_route r;
	return wire_route_get(&r, p, len);
}

static void test_wire_bodies_cut(void)
{
	static const struct {
		const char *name;
		int (*get)(const uint8_t *p, size_t len);
	} row[] = {
		{"id", get_id},
		{"create", get_create},
		{"create-reply", get_create_reply},
		{"create-reply-rejected", get_create_reply},
		{"find-reply", get_find_reply},
		{"find-reply-none", get_find_reply},
		{"close-spot", get_close},
		{"close-spot-reply", get_close_reply},
		{"route", get_route},
		{"route-none", get_route},
	};

	for (size_t i = 0; i < T_COUNT(row); i++) {
		const struct vector *v = vector(row[i].name);

		for (uint32_t len = 0; len <= v->len + 1; len++) {
			/* exactly as much memory as there is, for the sanitizer */
			uint8_t *p = calloc(1, len ? len : 1);

			memcpy(p, v->b, len < v->len ? len : v->len);
			CU_ASSERT_EQUAL(row[i].get(p, len), len == v->len ? 0 : -EBADMSG);
			free(p);
		}
	}
}

struct spoil {
	const char *name;
	uint32_t at;
	uint8_t value;
};

static void test_wire_bodies_spoiled(void)
{
	static const struct spoil row[] = {
		{"create", 0, 2},	    {"create", 8, 0},	  {"create", 13, 0},
		{"create", 14, 0xff},	    {"create", 24, 0xff}, {"create-reply", 0, 3},
		{"create-reply", 8, 0x80},  {"find-reply", 0, 2}, {"close-spot", 7, 0},
		{"close-spot-reply", 0, 2}, {"route", 0, 3},	  {"route", 1, 0},
		{"route", 1, 129},	    {"route", 2, 1},	  {"route", 15, 0},
		{"route-none", 0, 1},	    {"route-none", 1, 1}, {"route-none", 15, 1},
	};

	for (size_t i = 0; i < T_COUNT(row); i++) {
		const struct vector *v = vector(row[i].name);
		uint8_t p[1024];
		int err = 0;

		memcpy(p, v->b, v->len);
		p[row[i].at] = row[i].value;
		if (!strncmp(row[i].name, "create-reply", 12))
			err = get_create_reply(p, v->len);
		else if (!strncmp(row[i].name, "create", 6))
			err = get_create(p, v->len);
		else if (!strncmp(row[i].name, "find", 4))
			err = get_find_reply(p, v->len);
		else if (!strcmp(row[i].name, "close-spot"))
			err = get_close(p, v->len);
		else if (!strncmp(row[i].name, "close", 5))
			err = get_close_reply(p, v->len);
		else
			err = get_route(p, v->len);
		CU_ASSERT_EQUAL(err, -EBADMSG);
		if (err != -EBADMSG)
			printf("\n  %s byte %u\n", row[i].name, row[i].at);
	}
}

static void test_wire_message_header_spoiled(void)
{
	static const struct spoil row[] = {
		{"msg-send", 1, 1},	  {"msg-send", 1, 2},	  {"msg-send", 6, 0},
		{"msg-send", 7, 1},	  {"msg-send", 12, 1},	  {"msg-send", 15, 1},
		{"msg-send", 47, 1},	  {"msg-send", 5, 1},	  {"msg-request", 1, 0},
		{"msg-request", 4, 0xff}, {"msg-request", 5, 26}, {"msg-request", 47, 0},
		{"msg-reply", 6, 13},	  {"msg-reply", 6, 0xfe}, {"msg-reply", 16, 1},
		{"msg-reply", 39, 1},	  {"msg-reply", 47, 0},	  {"msg-reply-error", 6, 99},
	};
	struct wire_msg m;

	for (size_t i = 0; i < T_COUNT(row); i++) {
		const struct vector *v = vector(row[i].name);
		uint8_t p[1024];

		CU_ASSERT_EQUAL(wire_msg_get(&m, v->b, v->len), 0);
		for (uint32_t len = 0; len < WIRE_MSG_BYTES; len++)
			CU_ASSERT_EQUAL(wire_msg_get(&m, v->b, len), -EBADMSG);
		memcpy(p, v->b, v->len);
		p[row[i].at] = row[i].value;
		CU_ASSERT_EQUAL(wire_msg_get(&m, p, v->len), -EBADMSG);
	}
}

static void test_wire_metadata(void)
{
	uint8_t p[2048], old[2048];
	char big[1024];
	int len = 0;

	memset(big, 'v', sizeof(big));
	/* exactly 1024 bytes fit, 1025 do not */
	len = wire_meta_set(p, 0, sizeof(p), text("k"), (struct pack_bytes){big, 1020});
	CU_ASSERT_EQUAL(len, 1024);
	CU_ASSERT_EQUAL(wire_meta_check(p, 1024), 0);
	memcpy(old, p, sizeof(p));
	CU_ASSERT_EQUAL(
		wire_meta_set(p, 1024, sizeof(p), text("k"), (struct pack_bytes){big, 1021}),
		-EMSGSIZE);
	CU_ASSERT_EQUAL(wire_meta_set(p, 1024, sizeof(p), text("l"), text("")), -EMSGSIZE);
	CU_ASSERT(memcmp(old, p, sizeof(p)) == 0);
	/* last wins, order is by bytes */
	len = wire_meta_set(p, 0, sizeof(p), text("b"), text("1"));
	len = wire_meta_set(p, (uint32_t)len, sizeof(p), text("a"), text("22"));
	len = wire_meta_set(p, (uint32_t)len, sizeof(p), text("ab"), text(""));
	len = wire_meta_set(p, (uint32_t)len, sizeof(p), text("b"), text("333"));
	CU_ASSERT_EQUAL(len, 6 + 5 + 7);
	CU_ASSERT(memcmp(p,
			 "\1a\0\2"
			 "22"
			 "\2ab\0\0"
			 "\1b\0\3"
			 "333",
			 18) == 0);
	CU_ASSERT_EQUAL(wire_meta_check(p, (uint32_t)len), 0);
	for (uint32_t cut = 0; cut < 18; cut++)
		CU_ASSERT_EQUAL(wire_meta_check(p, cut), cut == 6 || cut == 11 ? 0 : -EBADMSG);
	/* NUL, bad UTF-8, empty key, twice, out of order */
	CU_ASSERT_EQUAL(wire_meta_set(p, 0, 100, (struct pack_bytes){"a\0b", 3}, text("")),
			-EINVAL);
	CU_ASSERT_EQUAL(wire_meta_set(p, 0, 100, text("a"), text("\xff")), -EINVAL);
	CU_ASSERT_EQUAL(wire_meta_set(p, 0, 100, text(""), text("x")), -EINVAL);
	CU_ASSERT_EQUAL(wire_meta_check((const uint8_t *)"\0\0\1x", 4), -EBADMSG);
	CU_ASSERT_EQUAL(wire_meta_check((const uint8_t *)"\1a\0\1\0", 5), -EBADMSG);
	CU_ASSERT_EQUAL(wire_meta_check((const uint8_t *)"\1a\0\1\xc3", 5), -EBADMSG);
	CU_ASSERT_EQUAL(wire_meta_check((const uint8_t *)"\1a\0\0\1a\0\0", 8), -EBADMSG);
	CU_ASSERT_EQUAL(wire_meta_check((const uint8_t *)"\1b\0\0\1a\0\0", 8), -EBADMSG);
}

/* The reference implementation's values for 00 01 .. and key 00 .. 0f. */
static void test_siphash_reference(void)
{
	struct siphash_key key = {0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};
	uint8_t in[16];

	for (int i = 0; i < 16; i++)
		in[i] = (uint8_t)i;
	CU_ASSERT_EQUAL(siphash(&key, in, 0), 0x726fdb47dd0e0e31ULL);
	CU_ASSERT_EQUAL(siphash(&key, in, 1), 0x74f839c593dc67fdULL);
	CU_ASSERT_EQUAL(siphash(&key, in, 8), 0x93f5f5799a932462ULL);
	CU_ASSERT_EQUAL(siphash(&key, in, 15), 0xa129ca6149be45e5ULL);
}

static const struct t_case cases[] = {
	T(test_wire_bodies_cut, "S-WIRE-1"),
	T(test_wire_bodies_spoiled, "S-WIRE-1"),
	T(test_wire_message_header_spoiled, "S-WIRE-1"),
	T(test_wire_metadata, "S-META-1", "S-META-2"),
	T(test_siphash_reference),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("wire_bad", vectors_read, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
