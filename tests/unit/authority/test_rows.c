/* SPDX-License-Identifier: BSD-3-Clause */
/* The row codec: golden bytes, round trips, damage at every byte, illegal combinations. The golden
 * values were made by a program of its own that knows only the layout, not by this codec. */
#include "control/authority/crc32c.h"
#include "control/authority/rows.h"
#include "tests/lib/t_guard.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char golden_creating[] =
	"1101010002010100000000000000000000000000000000000000056f776e2d31046d657368036e2d"
	"318877665544332211070000000000000004726f6f6d090000000000000003636c69030000000000"
	"000004000000000000000500000000000000e80300000000000003000000ba7816bf8f01cfea4141"
	"40de5dae2223b00361a396177a9cb410ff61f20015ad99902cbd";
static const char golden_ready[] =
	"1100020002020100000000000000020000000600000000000000056f776e2d31046d657368036e2d"
	"318877665544332211070000000000000004726f6f6dfc3b06df";
static const char golden_lease[] =
	"41046d657368036e2d31096e2d656e7472792d3188776655443322114d000000000000007b000000"
	"00000000b3fe0a7b";
static const char golden_cap[] =
	"310300000001000000010000000200000004726f6f6d020200000001000000046361727403010000"
	"00000000006ea2e8b1";
static const char golden_node[] =
	"21056f776e2d31046d657368036e2d3188776655443322110000000000000000096e2d656e747279"
	"2d310d00000031302e302e302e313a3734303005302e312e30020000000000000001020000006400"
	"00000100000004726f6f6d020a000000ce448bbf";
static const char golden_opt[] =
	"5101ff06726f6f6d2d3104726f6f6d046d657368036e2d312a000000000000000100000000000000"
	"887766554433221107000000000000000002000500000068656c6c6fca47f652eda026dcb206e23e"
	"78e1aa21dadb330483088ef105ca27f08bf3c5bb76dc0bf7";

static struct auth_bytes ab(const char *text)
{
	return (struct auth_bytes){text, (uint32_t)strlen(text)};
}

static bool same(struct auth_bytes a, const char *text)
{
	return a.n == strlen(text) && memcmp(a.p, text, a.n) == 0;
}

static size_t unhex(const char *hex, uint8_t *out)
{
	size_t n = strlen(hex) / 2;
	unsigned v;

	for (size_t i = 0; i < n; i++) {
		sscanf(hex + 2 * i, "%2x", &v);
		out[i] = (uint8_t)v;
	}
	return n;
}

static void check_golden(const char *hex, const uint8_t *got, uint32_t n)
{
	uint8_t want[1024];
	size_t len = unhex(hex, want);

	CU_ASSERT_EQUAL(n, len);
	CU_ASSERT_EQUAL(memcmp(got, want, len < n ? len : n), 0);
}

static struct row_owner owner(void)
{
	return (struct row_owner){ab("own-1"), ab("mesh"), ab("n-1"), 0x1122334455667788, 7};
}

static struct row_obj ready_row(void)
{
	return (struct row_obj){.state = AUTH_ROW_READY,
				.kind = SPL_KIND_USER,
				.alloc = ROW_ACTIVE,
				.own_gen = 1,
				.members = 2,
				.epoch = 6,
				.owner = owner(),
				.type = ab("room")};
}

static struct row_obj creating_row(void)
{
	static const uint8_t sha_abc[32] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
					    0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
					    0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
					    0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
	struct row_obj r = ready_row();

	r.state = AUTH_ROW_CREATING;
	r.alloc = ROW_RESERVED;
	r.members = 0;
	r.epoch = 0;
	r.has_pending = true;
	r.pending = (struct row_pending){
		.attempt = 9, .op = {ab("cli"), 3, 4, 5}, .deadline = 1000, .size = 3};
	memcpy(r.pending.sha256, sha_abc, 32);
	return r;
}

static void test_crc32c(void)
{
	CU_ASSERT_EQUAL(crc32c("123456789", 9), 0xe3069283);
	CU_ASSERT_EQUAL(crc32c("", 0), 0);
}

static void test_golden_object(void)
{
	struct row_obj r = ready_row(), got;
	uint8_t buf[ROW_OBJ_MAX];
	uint32_t n = row_obj_put(buf, sizeof(buf), &r);

	check_golden(golden_ready, buf, n);
	CU_ASSERT_EQUAL(row_obj_get(&got, buf, n), 0);
	CU_ASSERT_TRUE(got.state == AUTH_ROW_READY && got.op == ROW_STEADY &&
		       got.kind == SPL_KIND_USER && got.alloc == ROW_ACTIVE && got.own_gen == 1 &&
		       got.members == 2 && got.epoch == 6 && !got.has_pending);
	CU_ASSERT_TRUE(same(got.type, "room") && same(got.owner.owner_id, "own-1") &&
		       same(got.owner.mesh, "mesh") && same(got.owner.rid, "n-1") &&
		       got.owner.lifecycle == 0x1122334455667788 && got.owner.lease_gen == 7);
	r = creating_row();
	n = row_obj_put(buf, sizeof(buf), &r);
	check_golden(golden_creating, buf, n);
	CU_ASSERT_EQUAL(row_obj_get(&got, buf, n), 0);
	CU_ASSERT_TRUE(got.has_pending && got.pending.attempt == 9 &&
		       same(got.pending.op.rid, "cli") && got.pending.op.lifecycle == 3 &&
		       got.pending.op.hi == 4 && got.pending.op.lo == 5 &&
		       got.pending.deadline == 1000 && got.pending.size == 3 &&
		       memcmp(got.pending.sha256, r.pending.sha256, 32) == 0);
	CU_ASSERT_EQUAL(row_obj_put(buf, n - 1, &r), 0); /* no room */
}

static void test_golden_host_rows(void)
{
	struct row_type t = {ab("room"), SPL_KIND_USER, 10}, tt;
	struct row_cap_type ct[2] = {{ab("room"), SPL_KIND_USER, 2, 1},
				     {ab("cart"), SPL_KIND_INSTANCE, 1, 0}},
			    ctt;
	struct row_node node = {.owner = owner(),
				.endpoint = ab("10.0.0.1:7400"),
				.entry_id = ab("n-entry-1"),
				.version = ab("0.1.0"),
				.revision = 2,
				.state = AUTH_HOST_SERVING,
				.lanes = 2,
				.weight = 100,
				.n_types = 1};
	struct row_cap cap = {3, 1, 1, 2, {NULL, 0}};
	struct row_lease lease = {ab("mesh"),	      ab("n-1"), ab("n-entry-1"),
				  0x1122334455667788, 77,	 123};
	uint8_t buf[1024];
	size_t at = 0;
	uint32_t n;

	node.owner.lease_gen = 0;
	n = row_node_put(buf, sizeof(buf), &node, &t);
	check_golden(golden_node, buf, n);
	CU_ASSERT_EQUAL(row_node_get(&node, buf, n), 0);
	CU_ASSERT_TRUE(same(node.endpoint, "10.0.0.1:7400") && same(node.entry_id, "n-entry-1") &&
		       node.revision == 2 && node.lanes == 2 && node.weight == 100);
	CU_ASSERT_TRUE(row_node_type(&node, &at, &tt) && same(tt.name, "room") && tt.limit == 10);
	CU_ASSERT_FALSE(row_node_type(&node, &at, &tt));
	n = row_cap_put(buf, sizeof(buf), &cap, ct);
	check_golden(golden_cap, buf, n);
	CU_ASSERT_EQUAL(row_cap_get(&cap, buf, n), 0);
	at = 0;
	CU_ASSERT_TRUE(row_cap_type(&cap, &at, &ctt) && same(ctt.name, "room") && ctt.active == 2 &&
		       ctt.reserved == 1);
	CU_ASSERT_TRUE(row_cap_type(&cap, &at, &ctt) && same(ctt.name, "cart"));
	CU_ASSERT_FALSE(row_cap_type(&cap, &at, &ctt));
	n = row_lease_put(buf, sizeof(buf), &lease);
	check_golden(golden_lease, buf, n);
	memset(&lease, 0, sizeof(lease));
	CU_ASSERT_EQUAL(row_lease_get(&lease, buf, n), 0);
	CU_ASSERT_TRUE(same(lease.rid, "n-1") && lease.lease == 77 && lease.start == 123);
	/* Counters that do not add up are no capacity row. */
	cap = (struct row_cap){4, 1, 1, 2, {NULL, 0}};
	n = row_cap_put(buf, sizeof(buf), &cap, ct);
	CU_ASSERT_EQUAL(row_cap_get(&cap, buf, n), -EINVAL);
}

static void test_golden_terminal(void)
{
	struct row_opt o = {.result = ROW_CREATED,
			    .kind = SPL_OK,
			    .id = ab("room-1"),
			    .type = ab("room"),
			    .mesh = ab("mesh"),
			    .rid = ab("n-1"),
			    .obj_gen = 42,
			    .own_gen = 1,
			    .lifecycle = 0x1122334455667788,
			    .lease_gen = 7,
			    .text = ab(""),
			    .content = 2,
			    .reply = ab("hello")};
	static uint8_t big[STORE_VALUE_MAX], reply[AUTH_REPLY_MAX + 1];
	uint8_t buf[1024];
	uint32_t n = row_opt_put(buf, sizeof(buf), &o);
	struct row_opt got;

	check_golden(golden_opt, buf, n);
	CU_ASSERT_EQUAL(row_opt_get(&got, buf, n), 0);
	CU_ASSERT_TRUE(got.result == ROW_CREATED && same(got.id, "room-1") && got.obj_gen == 42 &&
		       same(got.reply, "hello") && got.content == 2);
	/* The largest reply with the longest names is still one value; a byte more is not. */
	o.reply = (struct auth_bytes){reply, AUTH_REPLY_MAX};
	o.id = o.type = o.mesh = o.rid = o.text = (struct auth_bytes){reply, 255};
	n = row_opt_put(big, sizeof(big), &o);
	CU_ASSERT_TRUE(n > 0 && n <= STORE_VALUE_MAX);
	CU_ASSERT_EQUAL(row_opt_get(&got, big, n), 0);
	o.reply.n++;
	CU_ASSERT_EQUAL(row_opt_put(big, sizeof(big), &o), 0);
	o.reply.n = 0;
	o.result = ROW_FAILED; /* needs a kind */
	CU_ASSERT_EQUAL(row_opt_put(big, sizeof(big), &o), 0);
	o.kind = SPL_E_INTERNAL_FAILURE;
	CU_ASSERT_TRUE(row_opt_put(big, sizeof(big), &o) > 0);
}

/* Every flipped byte and every cut is refused; nothing is read beyond the end. */
static void damage(const char *hex, int (*get)(const void *, size_t))
{
	uint8_t buf[1024], *g;
	size_t n = unhex(hex, buf);

	CU_ASSERT_EQUAL(get(t_guard(buf, n), n), 0);
	for (size_t i = 0; i < n; i++) {
		CU_ASSERT_EQUAL(get(t_guard(buf, i), i), -EBADMSG);
		g = t_guard(buf, n);
		g[i] ^= 0x20;
		CU_ASSERT_EQUAL(get(g, n), -EBADMSG);
	}
	/* Right checksum, wrong content: other versions, and each byte changed and summed anew. */
	for (size_t i = 0; i + 4 < n; i++) {
		uint32_t crc;

		g = t_guard(buf, n);
		g[i] ^= 0x80;
		crc = crc32c(g, n - 4);
		for (int k = 0; k < 4; k++)
			g[n - 4 + (size_t)k] = (uint8_t)(crc >> (8 * k));
		if (i == 0)
			CU_ASSERT_EQUAL(get(g, n), -EPROTONOSUPPORT);
		get(g, n); /* whatever it says, it stays inside */
	}
}

#define GET(name) \
	static int get_##name(const void *p, size_t n) \
	{ \
		struct row_##name r; \
		return row_##name##_get(&r, p, n); \
	}
GET(obj)
GET(node)
GET(cap)
GET(lease)
GET(opt)

static void test_damage(void)
{
	damage(golden_ready, get_obj);
	damage(golden_creating, get_obj);
	damage(golden_node, get_node);
	damage(golden_cap, get_cap);
	damage(golden_lease, get_lease);
	damage(golden_opt, get_opt);
	CU_ASSERT_EQUAL(get_obj("", 0), -EBADMSG);
}

/* Encodes without the check, so that decoding has to refuse it. */
static int decode_of(const struct row_obj *r)
{
	struct row_obj legal = *r, got;
	uint8_t buf[ROW_OBJ_MAX + 64];
	uint32_t crc, n;

	/* Same shape, but legal; then the five enum bytes and own_gen are put in. */
	legal.kind = r->type.n ? SPL_KIND_USER : SPL_KIND_ENTRY;
	legal.alloc = !r->type.n ? ROW_NONE : r->has_pending ? ROW_RESERVED : ROW_ACTIVE;
	legal.op = r->reloc.n ? ROW_RELOCATION : ROW_STEADY;
	legal.state = r->reloc.n       ? AUTH_ROW_RELOCATING
		      : r->has_pending ? AUTH_ROW_CREATING
				       : AUTH_ROW_READY;
	if (r->recovery.n)
		legal.kind = SPL_KIND_INSTANCE;
	legal.own_gen = 1;
	legal.members = 0;
	n = row_obj_put(buf, sizeof(buf), &legal);
	CU_ASSERT_TRUE_FATAL(n > 0);
	buf[2] = (uint8_t)r->state;
	buf[3] = (uint8_t)r->op;
	buf[4] = (uint8_t)r->kind;
	buf[5] = (uint8_t)r->alloc;
	for (int i = 0; i < 8; i++)
		buf[6 + i] = (uint8_t)(r->own_gen >> (8 * i));
	buf[14] = (uint8_t)r->members;
	crc = crc32c(buf, n - 4);
	for (uint32_t k = 0; k < 4; k++)
		buf[n - 4 + k] = (uint8_t)(crc >> (8 * k));
	return row_obj_get(&got, buf, n);
}

#define ILLEGAL(change) \
	do { \
		struct row_obj r = ready_row(); \
		r.members = 0; \
		change; \
		CU_ASSERT_FALSE(row_obj_legal(&r)); \
		CU_ASSERT_EQUAL(row_obj_put(buf, sizeof(buf), &r), 0); \
		CU_ASSERT_EQUAL(decode_of(&r), -EINVAL); \
	} while (0)

static void test_illegal_combinations(void)
{
	struct row_obj ok = ready_row();
	uint8_t buf[ROW_OBJ_MAX];

	CU_ASSERT_TRUE(row_obj_legal(&ok));
	ok.members = 0;
	CU_ASSERT_EQUAL(decode_of(&ok), 0);
	ILLEGAL(r.state = AUTH_ROW_CREATING);		   /* without Reserved */
	ILLEGAL(r.alloc = ROW_RESERVED);		   /* without pending */
	ILLEGAL(r = creating_row(); r.alloc = ROW_ACTIVE); /* pending only with Reserved */
	ILLEGAL(r = creating_row(); r.state = AUTH_ROW_READY);
	ILLEGAL(r.op = ROW_RELOCATION); /* no record */
	ILLEGAL(r.state = AUTH_ROW_RELOCATING);
	ILLEGAL(r.reloc = ab("record"));			/* not relocating */
	ILLEGAL(r.reloc = ab("record"); r.op = ROW_RELOCATION); /* state */
	ILLEGAL(r.reloc = ab("record"); r.state = AUTH_ROW_RELOCATING);
	ILLEGAL(r.recovery = ab("root")); /* only Instance */
	ILLEGAL(r.recovery = ab("root"); r.kind = SPL_KIND_INSTANCE; r.state = AUTH_ROW_CLOSING;
		r.op = ROW_CLOSE);
	ILLEGAL(r.op = ROW_CLOSE);
	ILLEGAL(r.state = AUTH_ROW_CLOSING);
	ILLEGAL(r.op = ROW_COLD);
	ILLEGAL(r.kind = SPL_KIND_ENTRY); /* with a type, with capacity */
	ILLEGAL(r.type = ab(""));
	ILLEGAL(r.type = ab(""); r.kind = SPL_KIND_ENTRY); /* counts for capacity */
	ILLEGAL(r.type = ab(""); r.kind = SPL_KIND_ENTRY; r.alloc = ROW_NONE;
		r.state = AUTH_ROW_CLOSING; r.op = ROW_CLOSE);
	ILLEGAL(r.kind = SPL_KIND_INVALID);
	ILLEGAL(r.kind = (enum spl_kind)4);
	ILLEGAL(r.state = (enum auth_row_state)0);
	ILLEGAL(r.state = (enum auth_row_state)9);
	ILLEGAL(r.op = (enum row_op)7);
	ILLEGAL(r.alloc = (enum row_alloc)3);
	ILLEGAL(r.own_gen = 0);
	ILLEGAL(r.own_gen = 1ULL << 63);
	ILLEGAL(r.members = 1; r.state = AUTH_ROW_CLOSING; r.op = ROW_CLOSE);
	ILLEGAL(r.members = 1; r.kind = SPL_KIND_INSTANCE);
	/* And these are legal. */
	ok = ready_row();
	ok.reloc = ab("record");
	ok.op = ROW_RELOCATION;
	ok.state = AUTH_ROW_RELOCATING;
	CU_ASSERT_TRUE(row_obj_put(buf, sizeof(buf), &ok) > 0);
	ok = ready_row();
	ok.members = 0;
	ok.kind = SPL_KIND_INSTANCE;
	ok.recovery = ab("root");
	CU_ASSERT_TRUE(row_obj_put(buf, sizeof(buf), &ok) > 0);
}

static void test_entry_never_relocates(void)
{
	struct row_obj r = ready_row();
	uint8_t buf[ROW_OBJ_MAX];

	r.kind = SPL_KIND_ENTRY;
	r.type = ab("");
	r.alloc = ROW_NONE;
	CU_ASSERT_TRUE(row_obj_put(buf, sizeof(buf), &r) > 0);
	r.state = AUTH_ROW_RELOCATING;
	r.op = ROW_RELOCATION;
	r.reloc = ab("record");
	CU_ASSERT_EQUAL(row_obj_put(buf, sizeof(buf), &r), 0);
}

static void test_keys(void)
{
	char a[ROW_KEY_MAX], b[ROW_KEY_MAX];
	struct row_op_id op = {ab("cli/x"), 1, 0xabc, 2}, op2 = {ab("cli"), 1, 0xabc, 2};
	static char name[255];
	uint32_t n;

	n = row_key_obj(a, ab("a/b:c"));
	CU_ASSERT_TRUE(n == 21 && memcmp(a, "/spotlane/obj/s/a/b:c", n) == 0);
	CU_ASSERT_TRUE(same(row_spot_of_key((struct store_bytes){a, n}), "a/b:c"));
	n = row_key_node(a, ab("a/b"), ab("c"));
	CU_ASSERT_TRUE(n != row_key_node(b, ab("a"), ab("b-c")) || memcmp(a, b, n) != 0);
	n = row_key_opt(a, &op);
	CU_ASSERT_TRUE(n == 14 + 5 + 1 + 16 + 1 + 32 && a[n - 1] == '2');
	CU_ASSERT_NOT_EQUAL(row_key_opt(b, &op2), n);
	memset(name, 'x', sizeof(name));
	CU_ASSERT_TRUE(row_key_node(a, (struct auth_bytes){name, 255},
				    (struct auth_bytes){name, 255}) <= ROW_KEY_MAX);
	op.rid = (struct auth_bytes){name, 255};
	CU_ASSERT_TRUE(row_key_opt(a, &op) <= ROW_KEY_MAX);
	CU_ASSERT_EQUAL(row_spot_of_key(row_spots_prefix()).n, 0);
}

static const struct t_case cases[] = {
	T(test_crc32c),
	T(test_golden_object, "A-LOC-2"),
	T(test_golden_host_rows, "A-LOC-2", "A-NODE-6"),
	T(test_golden_terminal, "A-LOC-20"),
	T(test_damage, "A-LOC-3"),
	T(test_illegal_combinations, "A-LOC-3", "A-LOC-2"),
	T(test_entry_never_relocates, "A-LOC-3"),
	T(test_keys, "A-LOC-1", "S-ID-2"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("authority.rows", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
