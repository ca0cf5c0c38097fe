/* SPDX-License-Identifier: BSD-3-Clause */
/* One value of the configuration: checked, stored, freed, written. Pure; owns nothing itself, the
 * struct that it stores into owns its texts and lists. */
#include "control/config/options.h"
#include "common/utf8.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static void *member(const struct conf_option *o, void *base)
{
	return (char *)base + o->offset;
}

static const void *member_of(const struct conf_option *o, const void *base)
{
	return (const char *)base + o->offset;
}

/* Little helpers for members of 1, 2, 4 and 8 bytes; the table's ranges fit the members (tested).
 */
static void store(const struct conf_option *o, void *base, int64_t v)
{
	void *m = member(o, base);

	switch (o->size) {
	case 1:
		*(uint8_t *)m = (uint8_t)v;
		break;
	case 2:
		*(uint16_t *)m = (uint16_t)v;
		break;
	case 4:
		*(uint32_t *)m = (uint32_t)v;
		break;
	default:
		*(int64_t *)m = v;
		break;
	}
}

static int64_t fetch(const struct conf_option *o, const void *base)
{
	const void *m = member_of(o, base);

	switch (o->size) {
	case 1:
		return *(const uint8_t *)m;
	case 2:
		return *(const uint16_t *)m;
	case 4:
		return o->min < 0 ? *(const int32_t *)m : (int64_t) * (const uint32_t *)m;
	default:
		return *(const int64_t *)m;
	}
}

static bool no_memory(char why[CONF_WHY_MAX])
{
	snprintf(why, CONF_WHY_MAX, "no memory");
	return false;
}

static bool append_int(struct conf_ints *l, int64_t v, char why[CONF_WHY_MAX])
{
	int64_t *grown;

	if (l->n == CONF_LIST_MAX) {
		snprintf(why, CONF_WHY_MAX, "more than %d entries", CONF_LIST_MAX);
		return false;
	}
	grown = realloc(l->v, (l->n + 1) * sizeof(*grown));
	if (!grown)
		return no_memory(why);
	l->v = grown;
	l->v[l->n++] = v;
	return true;
}

static bool append_text(struct conf_texts *l, const char *v, char why[CONF_WHY_MAX])
{
	char *copy;
	char **grown;

	if (l->n == CONF_LIST_MAX) {
		snprintf(why, CONF_WHY_MAX, "more than %d entries", CONF_LIST_MAX);
		return false;
	}
	grown = realloc(l->v, (l->n + 1) * sizeof(*grown));
	if (!grown)
		return no_memory(why);
	l->v = grown;
	copy = strdup(v);
	if (!copy)
		return no_memory(why);
	l->v[l->n++] = copy;
	return true;
}

bool conf_put_int(const struct conf_option *o, void *base, int64_t v, char why[CONF_WHY_MAX])
{
	if (o->kind != CONF_KIND_INT && o->kind != CONF_KIND_INTS) {
		snprintf(why, CONF_WHY_MAX, "must be %s, not an integer", conf_kind_words(o->kind));
		return false;
	}
	if (v < o->min || v > o->max) {
		snprintf(why, CONF_WHY_MAX, "%lld is out of range (%lld..%lld)", (long long)v,
			 (long long)o->min, (long long)o->max);
		return false;
	}
	if (o->kind == CONF_KIND_INTS)
		return append_int(member(o, base), v, why);
	store(o, base, v);
	return true;
}

static bool put_choice(const struct conf_option *o, void *base, const char *v, char *why)
{
	const char *at = o->choices;
	size_t len = strlen(v);

	for (int64_t i = 0; *at; i++) {
		size_t n = strcspn(at, "|");

		if (n == len && memcmp(at, v, n) == 0) {
			store(o, base, i);
			return true;
		}
		at += at[n] ? n + 1 : n;
	}
	if (strcmp(o->path, "security") == 0)
		snprintf(why, CONF_WHY_MAX,
			 "\"%.40s\" is not available: links are not authenticated yet, and until "
			 "they are it must be \"none\"",
			 v);
	else
		snprintf(why, CONF_WHY_MAX, "\"%.40s\" is none of %s", v, o->choices);
	return false;
}

static bool put_mode(const struct conf_option *o, void *base, const char *v, char *why)
{
	char *end;
	long mode = strtol(v, &end, 8);

	if (*end || strspn(v, "01234567") != strlen(v) || strlen(v) < 3 || strlen(v) > 4 ||
	    mode > o->max) {
		snprintf(why, CONF_WHY_MAX, "\"%.40s\" is no file mode (\"0000\"..\"0777\", octal)",
			 v);
		return false;
	}
	store(o, base, mode);
	return true;
}

static bool put_ipv4(const struct conf_option *o, void *base, const char *v, char *why)
{
	struct in_addr a = {0};

	if (*v && inet_pton(AF_INET, v, &a) != 1) {
		snprintf(why, CONF_WHY_MAX, "\"%.40s\" is no IPv4 address", v);
		return false;
	}
	store(o, base, ntohl(a.s_addr));
	return true;
}

static bool has_only(const char *v, bool (*ok)(unsigned char))
{
	for (; *v; v++)
		if (!ok((unsigned char)*v))
			return false;
	return true;
}

static bool is_printable(unsigned char c)
{
	return c >= 0x20 && c != 0x7f;
}

static bool is_word(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

static bool check_text(const struct conf_option *o, const char *v, char *why)
{
	size_t n = strlen(v);
	bool path = o->kind == CONF_KIND_PATH || o->kind == CONF_KIND_PATHS;

	if (utf8_valid_bytes(v, n) != n)
		snprintf(why, CONF_WHY_MAX, "is not valid UTF-8");
	else if (!has_only(v, is_printable))
		snprintf(why, CONF_WHY_MAX, "contains a control character");
	else if (n < (size_t)o->min)
		snprintf(why, CONF_WHY_MAX,
			 n == 0 ? "must not be empty" : "too short (min %lld bytes)",
			 (long long)o->min);
	else if (n > (size_t)o->max)
		snprintf(why, CONF_WHY_MAX, "too long: %zu bytes (max %lld)", n, (long long)o->max);
	else if (o->kind == CONF_KIND_WORD && !has_only(v, is_word))
		snprintf(why, CONF_WHY_MAX, "\"%.80s\" may only have letters, digits and . _ -", v);
	else if (path && v[0] != '/')
		snprintf(why, CONF_WHY_MAX, "\"%.80s\" must be an absolute path", v);
	else if (o->kind == CONF_KIND_MODULE && v[0] != '/' && strchr(v, '/'))
		snprintf(why, CONF_WHY_MAX,
			 "\"%.80s\" must be an absolute path, or a file name without '/'", v);
	else
		return true;
	return false;
}

bool conf_put_text(const struct conf_option *o, void *base, const char *v, char why[CONF_WHY_MAX])
{
	char *copy, **slot = member(o, base);

	switch (o->kind) {
	case CONF_KIND_CHOICE:
		return put_choice(o, base, v, why);
	case CONF_KIND_MODE:
		return put_mode(o, base, v, why);
	case CONF_KIND_IPV4:
		return put_ipv4(o, base, v, why);
	case CONF_KIND_INT:
	case CONF_KIND_INTS:
		snprintf(why, CONF_WHY_MAX, "must be %s, not a text", conf_kind_words(o->kind));
		return false;
	case CONF_KIND_TEXT:
	case CONF_KIND_WORD:
	case CONF_KIND_PATH:
	case CONF_KIND_MODULE:
	case CONF_KIND_TEXTS:
	case CONF_KIND_PATHS:
		break;
	}
	if (!check_text(o, v, why))
		return false;
	if (conf_kind_is_list(o->kind))
		return append_text(member(o, base), v, why);
	copy = strdup(v);
	if (!copy)
		return no_memory(why);
	free(*slot);
	*slot = copy;
	return true;
}

bool conf_put_default(const struct conf_option *o, void *base, char why[CONF_WHY_MAX])
{
	if (conf_kind_is_list(o->kind) && !*o->def)
		return true;
	if (o->kind == CONF_KIND_INT || o->kind == CONF_KIND_INTS)
		return conf_put_int(o, base, strtoll(o->def, NULL, 10), why);
	return conf_put_text(o, base, o->def, why);
}

static void write_quoted(FILE *f, const char *v)
{
	fputc('"', f);
	for (; *v; v++) {
		if (*v == '"' || *v == '\\')
			fputc('\\', f);
		fputc(*v, f);
	}
	fputc('"', f);
}

static void write_list(FILE *f, const struct conf_option *o, const void *m)
{
	const struct conf_ints *ints = m;
	const struct conf_texts *texts = m;
	bool is_int = o->kind == CONF_KIND_INTS;
	unsigned n = is_int ? ints->n : texts->n;

	fputc('[', f);
	for (unsigned i = 0; i < n; i++) {
		if (i)
			fputs(", ", f);
		if (is_int)
			fprintf(f, "%lld", (long long)ints->v[i]);
		else
			write_quoted(f, texts->v[i]);
	}
	fputc(']', f);
}

static void write_choice(FILE *f, const struct conf_option *o, int64_t v)
{
	const char *at = o->choices;

	for (int64_t i = 0; i < v; i++)
		at += strcspn(at, "|") + 1;
	fprintf(f, "\"%.*s\"", (int)strcspn(at, "|"), at);
}

static void write_ipv4(FILE *f, uint32_t ip)
{
	struct in_addr a = {htonl(ip)};
	char text[INET_ADDRSTRLEN] = "";

	if (ip)
		inet_ntop(AF_INET, &a, text, sizeof(text));
	fprintf(f, "\"%s\"", text);
}

char *conf_value_text(const struct conf_option *o, const void *base)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	const char *const *slot = member_of(o, base);

	if (!f)
		return NULL;
	if (conf_kind_is_list(o->kind))
		write_list(f, o, member_of(o, base));
	else if (o->kind == CONF_KIND_INT)
		fprintf(f, "%lld", (long long)fetch(o, base));
	else if (o->kind == CONF_KIND_CHOICE)
		write_choice(f, o, fetch(o, base));
	else if (o->kind == CONF_KIND_MODE)
		fprintf(f, "\"%04llo\"", (unsigned long long)fetch(o, base));
	else if (o->kind == CONF_KIND_IPV4)
		write_ipv4(f, (uint32_t)fetch(o, base));
	else
		write_quoted(f, *slot ? *slot : "");
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static void free_list(const struct conf_option *o, void *m)
{
	struct conf_ints *ints = m;
	struct conf_texts *texts = m;

	if (o->kind == CONF_KIND_INTS) {
		free(ints->v);
		*ints = (struct conf_ints){0};
		return;
	}
	for (unsigned i = 0; i < texts->n; i++)
		free(texts->v[i]);
	free(texts->v);
	*texts = (struct conf_texts){0};
}

void conf_free_members(const struct conf_table *t, void *base)
{
	for (unsigned i = 0; i < t->n; i++) {
		const struct conf_option *o = &t->o[i];
		char **slot = member(o, base);

		switch (o->kind) {
		case CONF_KIND_INTS:
		case CONF_KIND_TEXTS:
		case CONF_KIND_PATHS:
			free_list(o, member(o, base));
			break;
		case CONF_KIND_TEXT:
		case CONF_KIND_WORD:
		case CONF_KIND_PATH:
		case CONF_KIND_MODULE:
			free(*slot);
			*slot = NULL;
			break;
		case CONF_KIND_INT:
		case CONF_KIND_CHOICE:
		case CONF_KIND_MODE:
		case CONF_KIND_IPV4:
			break;
		}
	}
}
