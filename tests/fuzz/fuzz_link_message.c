/* SPDX-License-Identifier: BSD-3-Clause */
/* Part of fuzz_link: messages, metadata and control bodies. What decodes is canonical: encoding it
 * gives the same bytes.
 */
#include "common/wire_msg.h"
#include "tests/fuzz/fuzz_link.h"

static void same(const uint8_t *p, size_t len, const uint8_t *q, int n)
{
	FUZZ_CHECK(n >= 0 && (size_t)n == len && memcmp(p, q, len) == 0);
}

static void message(const uint8_t *p, size_t len, uint8_t *q)
{
	struct pack_bytes key, value;
	struct wire_msg m;
	uint32_t pos = 0, n = 0;
	int put = 0;

	if (wire_msg_get(&m, p, (uint32_t)len))
		return;
	wire_msg_put(q, &m);
	same(p, WIRE_MSG_BYTES, q, WIRE_MSG_BYTES);
	FUZZ_CHECK(m.payload + m.payload_len == p + len);
	if (!m.meta_len || wire_meta_check(m.meta, m.meta_len))
		return;
	while (wire_meta_next(m.meta, m.meta_len, &pos, &key, &value)) {
		put = wire_meta_set(q, n, SPL_METADATA_BYTES_MAX, key, value);
		FUZZ_CHECK(put > 0);
		n = (uint32_t)put;
	}
	same(m.meta, m.meta_len, q, (int)n);
}

static void create(const uint8_t *p, size_t len, uint8_t *q)
{
	struct wire_create_reply r;
	struct wire_create c;

	if (wire_create_get(&c, p, len) == 0)
		same(p, len, q, wire_create_put(q, len, &c));
	if (wire_create_reply_get(&r, p, len) == 0)
		same(p, len, q, wire_create_reply_put(q, len, &r));
}

static void other(const uint8_t *p, size_t len, uint8_t *q)
{
	struct wire_route route;
	struct pack_bytes id;
	struct wire_ref ref;
	uint64_t operation;
	bool yes;

	if (wire_id_get(&id, p, len) == 0)
		same(p, len, q, wire_id_put(q, len, id));
	if (wire_find_reply_get(&ref, &yes, p, len) == 0)
		same(p, len, q, wire_find_reply_put(q, len, yes ? &ref : NULL));
	if (wire_close_get(&operation, &ref, p, len) == 0)
		same(p, len, q, wire_close_put(q, len, operation, &ref));
	if (wire_close_reply_get(&yes, p, len) == 0)
		same(p, len, q, wire_close_reply_put(q, len, yes));
	if (wire_route_get(&route, p, len) == 0)
		same(p, len, q, wire_route_put(q, len, &route));
}

void fuzz_link_message(struct fuzz_in *in)
{
	uint8_t *p = malloc(in->left ? in->left : 1), *q = malloc(in->left + 2048);

	FUZZ_CHECK(p && q);
	memcpy(p, in->p, in->left);
	message(p, in->left, q);
	create(p, in->left, q);
	other(p, in->left, q);
	free(p);
	free(q);
}
