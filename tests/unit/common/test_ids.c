/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, keys, reserved form and UUIDs. */
#include "common/ids.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <spotlane/errors.h>
#include <spotlane/multicast.h>
#include <stdio.h>

static bool valid(const char *s)
{
	return spl_name_valid(s, strlen(s));
}

static void test_ids_are_utf8_of_1_to_255_bytes(void)
{
	char max[256];

	memset(max, 'x', sizeof(max));
	CU_ASSERT_FALSE(spl_name_valid("", 0));
	CU_ASSERT_TRUE(spl_name_valid("a", 1));
	CU_ASSERT_TRUE(spl_name_valid(max, 255));
	CU_ASSERT_FALSE(spl_name_valid(max, 256));
	CU_ASSERT_TRUE(spl_name_valid("a\0b", 3)); /* NUL is legal in an id */
	CU_ASSERT_TRUE(valid("caf\xc3\xa9"));
	CU_ASSERT_TRUE(valid("\xf0\x9f\x8e\xae"));
	CU_ASSERT_FALSE(valid("\xc3"));
	CU_ASSERT_FALSE(valid("\xc0\xaf"));	    /* overlong */
	CU_ASSERT_FALSE(valid("\xe0\x80\xaf"));	    /* overlong */
	CU_ASSERT_FALSE(valid("\xed\xa0\x80"));	    /* surrogate */
	CU_ASSERT_FALSE(valid("\xf4\x90\x80\x80")); /* beyond U+10FFFF */
	CU_ASSERT_FALSE(valid("\xff"));
	CU_ASSERT_FALSE(valid("a\x80"));
}

static void test_ids_compare_byte_for_byte(void)
{
	static const char *const ids[] = {"Room",    "room",	"caf\xc3\xa9", "cafe\xcc\x81",
					  "user!31", "user#31", "a b",	       "a+b",
					  "a/b",     "a:b"};

	for (size_t i = 0; i < T_COUNT(ids); i++)
		for (size_t j = 0; j < T_COUNT(ids); j++) {
			struct spl_key a = spl_spot_key(ids[i], strlen(ids[i]));
			struct spl_key b = spl_spot_key(ids[j], strlen(ids[j]));

			CU_ASSERT_EQUAL(spl_key_equal(&a, &b), i == j);
		}
}

static void test_ids_key_is_sha256_of_s_and_id(void)
{
	/* printf 's%s' room-1 | sha256sum; printf 'p%s' say | sha256sum */
	static const uint8_t room1[16] = {0xa7, 0xc4, 0xa9, 0xa6, 0x5e, 0x00, 0x1d, 0x7c,
					  0x13, 0xd1, 0x11, 0x57, 0x59, 0x72, 0x79, 0xd8};
	struct spl_key k = spl_spot_key("room-1", 6);

	CU_ASSERT_EQUAL(memcmp(k.b, room1, 16), 0);
	CU_ASSERT_NOT_EQUAL(spl_packet_key("say", 3), spl_packet_key("Say", 3));
	CU_ASSERT_NOT_EQUAL(spl_packet_key("say", 3), 0);
}

static void test_ids_reserved_form(void)
{
#define U4 "0f8fad5b-d9cb-469f-a165-70867728950e"
	static const char p64[] =
		"pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp";
	char s[200];

	CU_ASSERT_TRUE(spl_id_is_reserved("p-entry-" U4, 8 + 36));
	snprintf(s, sizeof(s), "%s-entry-%s", p64, U4);
	CU_ASSERT_TRUE(spl_id_is_reserved(s, strlen(s)));
	snprintf(s, sizeof(s), "x%s-entry-%s", p64, U4);
	CU_ASSERT_FALSE(spl_id_is_reserved(s, strlen(s)));
#define NOT_RESERVED(t) CU_ASSERT_FALSE(spl_id_is_reserved(t, strlen(t)))
	NOT_RESERVED("-entry-" U4);
	NOT_RESERVED("p/-entry-" U4);
	NOT_RESERVED("p-entry-0f8fad5b-d9cb-169f-a165-70867728950e"); /* v1 */
	NOT_RESERVED("p-entry-0F8FAD5B-d9cb-469f-a165-70867728950e"); /* upper case */
	NOT_RESERVED("p-entry-0f8fad5b-d9cb-469f-c165-70867728950e"); /* variant */
	NOT_RESERVED("p-entry-0f8fad5b-d9cb-469f-a165-70867728950");
	NOT_RESERVED("p-entry");
}

static void test_ids_uuid4_is_well_formed(void)
{
	struct t_rand r = {t_seed()};

	for (int i = 0; i < 1000; i++) {
		uint8_t rnd[16];
		char text[64] = "p-entry-";

		for (int j = 0; j < 16; j++)
			rnd[j] = (uint8_t)t_rand_u64(&r);
		spl_uuid4(rnd, text + 8);
		CU_ASSERT_EQUAL(strlen(text), 44);
		CU_ASSERT_TRUE(spl_id_is_reserved(text, 44));
	}
}

static void test_ids_lanes_are_even(void)
{
	unsigned hits[7] = {0};

	for (int i = 0; i < 70000; i++) {
		char id[16];
		struct spl_key k;

		snprintf(id, sizeof(id), "spot-%d", i);
		k = spl_spot_key(id, strlen(id));
		CU_ASSERT_EQUAL(spl_key_lane(&k, 1), 0);
		hits[spl_key_lane(&k, 7)]++;
	}
	for (int i = 0; i < 7; i++)
		CU_ASSERT(hits[i] > 9000 && hits[i] < 11000);
}

static void test_errors_have_the_contract_numbers(void)
{
	static const char *const names[SPL_ERROR_COUNT] = {
		"NotFound",	  "AlreadyExists", "TypeMismatch",     "NotConfigured",
		"Rejected",	  "Unavailable",   "CapacityExceeded", "DeadlineExceeded",
		"ShuttingDown",	  "ProtocolError", "InvalidOperation", "DataLost",
		"InternalFailure"};

	for (int i = 0; i < SPL_ERROR_COUNT; i++)
		CU_ASSERT_STRING_EQUAL(spl_error_name(i), names[i]);
	CU_ASSERT_EQUAL(SPL_E_NOT_FOUND, 0);
	CU_ASSERT_EQUAL(SPL_E_INTERNAL_FAILURE, 12);
	CU_ASSERT_STRING_EQUAL(spl_error_name(SPL_OK), "OK");
	CU_ASSERT_STRING_EQUAL(spl_error_name(13), "unknown");
}

static void test_ids_of_topics(void)
{
	struct spl_topic t, other;
	char name[256];

	memset(name, 'n', sizeof(name));
	CU_ASSERT_EQUAL(spl_topic_set(&t, name, 255, name, 255), 0);
	CU_ASSERT_EQUAL(spl_topic_set(&t, name, 256, name, 1), -EINVAL);
	CU_ASSERT_EQUAL(spl_topic_set(&t, name, 1, name, 256), -EINVAL);
	CU_ASSERT_EQUAL(spl_topic_set(&t, "", 0, name, 1), -EINVAL);
	CU_ASSERT_EQUAL(spl_topic_set(&t, name, 1, "", 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_topic_set(&t, "\xff", 1, name, 1), -EINVAL);
	CU_ASSERT_EQUAL(spl_topic_set(&t, name, 1, "\xc0\x80", 2), -EINVAL);
	CU_ASSERT_EQUAL(spl_topic_set(&t, "a\0b", 3, "\0", 1), 0); /* any byte, NUL included */
	CU_ASSERT_EQUAL(t.channel.len, 3);
	CU_ASSERT_EQUAL(spl_topic_set(&t, "\x01ZLF1", 5, "\x01ZLF1", 5), 0); /* none is reserved */
	CU_ASSERT_EQUAL(spl_topic_set(NULL, "a", 1, "b", 1), -EINVAL);
	/* Where one name ends and the other begins is part of the key. */
	CU_ASSERT_EQUAL(spl_topic_set(&t, "ab", 2, "c", 1), 0);
	CU_ASSERT_EQUAL(spl_topic_set(&other, "a", 1, "bc", 2), 0);
	CU_ASSERT(!spl_key_equal(&t.key, &other.key));
}

static const struct t_case cases[] = {
	T(test_ids_are_utf8_of_1_to_255_bytes, "S-ID-3"),
	T(test_ids_compare_byte_for_byte, "S-ID-1"),
	T(test_ids_key_is_sha256_of_s_and_id),
	T(test_ids_reserved_form),
	T(test_ids_uuid4_is_well_formed),
	T(test_ids_lanes_are_even),
	T(test_ids_of_topics, "S-NAME-5", "S-TOPIC-4", "S-TOPIC-1"),
	T(test_errors_have_the_contract_numbers, "S-ERR-1"),
};
static const struct t_suite suites[] = {T_SUITE("ids", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
