/* SPDX-License-Identifier: BSD-3-Clause */
/* The look-through before libconfig: see scan.h. A stack of open files instead of recursion; the
 * scanner owns the texts of that stack, the result is the caller's. */
#include "control/config/scan.h"
#include "control/config/file.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct open_file {
	char *text;
	size_t len, pos;
	unsigned file, line;
};

struct scan {
	struct conf_source *src;
	struct conf_report *rep;
	struct open_file stack[CONF_INCLUDES_MAX + 1];
	unsigned depth;	  /* of the stack */
	unsigned nesting; /* of brackets */
	bool bad;
};

static struct open_file *top_of(struct scan *s)
{
	return &s->stack[s->depth - 1];
}

static void fail(struct scan *s, const char *text)
{
	const struct open_file *f = top_of(s);

	conf_report_add(s->rep, s->src->files[f->file].name, f->line, "%s", text);
	s->bad = true;
}

static bool mark_line(struct scan *s)
{
	struct conf_source *src = s->src;
	const struct open_file *f = top_of(s);

	if (src->n_lines == src->cap_lines) {
		unsigned cap = src->cap_lines ? src->cap_lines * 2 : 256;
		struct conf_line *grown = realloc(src->lines, cap * sizeof(*grown));

		if (!grown)
			return false;
		src->lines = grown;
		src->cap_lines = cap;
	}
	src->lines[src->n_lines++] = (struct conf_line){f->file, f->line};
	return true;
}

static void emit(struct scan *s, const char *p, size_t n)
{
	struct conf_source *src = s->src;

	if (n == 0)
		return;
	if (src->len + n + 1 > src->cap) {
		size_t cap = (src->len + n + 1) * 2;
		char *grown = realloc(src->text, cap);

		if (!grown) {
			fail(s, "no memory");
			return;
		}
		src->text = grown;
		src->cap = cap;
	}
	if ((src->len == 0 || src->text[src->len - 1] == '\n') && !mark_line(s)) {
		fail(s, "no memory");
		return;
	}
	memcpy(src->text + src->len, p, n);
	src->len += n;
	src->text[src->len] = '\0';
}

/* Hands on the next character of the open file. */
static void take(struct scan *s)
{
	struct open_file *f = top_of(s);

	emit(s, f->text + f->pos, 1);
	f->line += f->text[f->pos] == '\n';
	f->pos++;
}

static size_t left(const struct open_file *f)
{
	return f->len - f->pos;
}

static bool starts(const struct open_file *f, const char *word)
{
	size_t n = strlen(word);

	return left(f) >= n && memcmp(f->text + f->pos, word, n) == 0;
}

static void skip_line_comment(struct open_file *f)
{
	while (f->pos < f->len && f->text[f->pos] != '\n')
		f->pos++;
}

static void skip_block_comment(struct scan *s)
{
	struct open_file *f = top_of(s);
	unsigned line = f->line;

	for (f->pos += 2; f->pos < f->len; f->pos++) {
		if (starts(f, "*/")) {
			f->pos += 2;
			emit(s, " ", 1);
			return;
		}
		if (f->text[f->pos] == '\n') {
			emit(s, "\n", 1);
			f->line++;
		}
	}
	f->line = line;
	fail(s, "a comment that is not closed with */");
}

static void take_string(struct scan *s)
{
	struct open_file *f = top_of(s);

	take(s);
	while (!s->bad && f->pos < f->len) {
		char c = f->text[f->pos];

		if (c == '"') {
			take(s);
			return;
		}
		if (starts(f, "\\x00")) {
			fail(s, "\\x00 in a text: a NUL byte is not allowed");
			return;
		}
		if (c == '\n' || c == '\r') {
			fail(s, "a text that is not closed with \" on its line");
			return;
		}
		if (c == '\\' && left(f) > 1 && f->text[f->pos + 1] != '\n')
			take(s);
		take(s);
	}
	if (!s->bad)
		fail(s, "a text that is not closed with \"");
}

static void take_name(struct scan *s)
{
	const struct open_file *f = top_of(s);
	size_t n = 0;

	while (n < left(f) &&
	       (isalnum((unsigned char)f->text[f->pos + n]) || f->text[f->pos + n] == '_' ||
		f->text[f->pos + n] == '-' || f->text[f->pos + n] == '*'))
		n++;
	for (; n > 0; n--)
		take(s);
}

/* Length of what looks like a number: a sign, digits, letters, dots, and a sign after e or E. */
static size_t number_length(const struct open_file *f)
{
	const char *p = f->text + f->pos;
	size_t n = *p == '-' || *p == '+' ? 1 : 0;
	bool hex = left(f) > n + 1 && p[n] == '0' && (p[n + 1] == 'x' || p[n + 1] == 'X');

	while (n < left(f)) {
		bool sign = !hex && n > 1 && (p[n] == '-' || p[n] == '+') &&
			    (p[n - 1] == 'e' || p[n - 1] == 'E');

		if (!sign && !isalnum((unsigned char)p[n]) && p[n] != '.' && p[n] != '_')
			break;
		n++;
	}
	return n;
}

static void take_integer(struct scan *s, const char *word, int base)
{
	char out[32];
	int64_t v;

	errno = 0;
	v = strtoll(word, NULL, base);
	if (errno == ERANGE || v == INT64_MIN) {
		char text[160];

		snprintf(text, sizeof(text), "%.80s is out of range of any integer", word);
		fail(s, text);
		return;
	}
	snprintf(out, sizeof(out), "%" PRId64 "L", v);
	emit(s, out, strlen(out));
}

static void take_number(struct scan *s)
{
	struct open_file *f = top_of(s);
	size_t n = number_length(f);
	char word[128];
	const char *digits = word;
	size_t body;

	if (n >= sizeof(word)) {
		fail(s, "a number of more than 127 characters");
		return;
	}
	memcpy(word, f->text + f->pos, n);
	word[n] = '\0';
	f->pos += n;
	if (*digits == '-' || *digits == '+')
		digits++;
	for (body = strlen(digits); body > 0 && digits[body - 1] == 'L'; body--)
		;
	if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
		if (body > 2 && strspn(digits + 2, "0123456789abcdefABCDEF") == body - 2)
			take_integer(s, word, 16);
		else
			emit(s, word, n);
	} else if (body == 0 || strspn(digits, "0123456789") != body) {
		emit(s, word, n);
	} else if (digits[0] == '0' && body > 1) {
		fail(s,
		     "an integer with a leading zero: write it without, or in quotes if it is an "
		     "octal file mode");
	} else {
		take_integer(s, word, 10);
	}
}

/* "a -> b -> c"; of a long name its end is shown. */
static void chain_of(const struct scan *s, const char *last, char out[2600])
{
	size_t n = 0;

	for (unsigned i = 0; i <= s->depth; i++) {
		const char *name = i < s->depth ? s->src->files[s->stack[i].file].name : last;
		size_t len = strlen(name);

		n += (size_t)snprintf(out + n, 2600 - n, "%s%.200s", i ? " -> " : "",
				      len > 200 ? name + len - 200 : name);
	}
}

static bool is_open(const struct scan *s, const struct stat *st)
{
	for (unsigned i = 0; i < s->depth; i++) {
		const struct conf_source_file *file = &s->src->files[s->stack[i].file];

		if (file->dev == st->st_dev && file->ino == st->st_ino)
			return true;
	}
	return false;
}

/* Puts a text on the stack; takes `text`, also when it fails. */
static void push(struct scan *s, const char *name, char *text, size_t len, const struct stat *st)
{
	struct conf_source *src = s->src;
	struct conf_source_file *file = &src->files[src->n_files];

	file->name = strdup(name);
	if (!file->name || !conf_text_is_clean(name, text, len, s->rep)) {
		free(file->name);
		free(text);
		if (s->rep->n == 0)
			conf_report_add(s->rep, name, 0, "no memory");
		s->bad = true;
		return;
	}
	file->dev = st->st_dev;
	file->ino = st->st_ino;
	file->size = st->st_size;
	file->mtime = st->st_mtim;
	s->stack[s->depth++] = (struct open_file){text, len, 0, src->n_files, 1};
	src->n_files++;
}

static void include_file(struct scan *s, const char *path)
{
	struct stat st = {0};
	char chain[2600], text[2800];
	char *bytes;
	size_t len;

	chain_of(s, path, chain);
	if (s->depth > CONF_INCLUDES_MAX || s->src->n_files == CONF_FILES_MAX) {
		snprintf(text, sizeof(text), "more than %d levels or %d files of @include: %s",
			 CONF_INCLUDES_MAX, CONF_FILES_MAX, chain);
		fail(s, text);
		return;
	}
	if (stat(path, &st) == 0 && is_open(s, &st)) {
		snprintf(text, sizeof(text), "@include makes a circle: %s", chain);
		fail(s, text);
		return;
	}
	bytes = conf_file_read(path, &len, &st, s->rep);
	if (!bytes) {
		snprintf(text, sizeof(text), "@include failed: %s", chain);
		fail(s, text);
		return;
	}
	push(s, path, bytes, len, &st);
}

/* Handles a line that begins with @include; the path is relative to the file that has it. */
static void take_include(struct scan *s)
{
	struct open_file *f = top_of(s);
	char name[1024], path[2048];
	const char *here = s->src->files[f->file].name;
	const char *slash = strrchr(here, '/');
	size_t n = 0;

	f->pos += strlen("@include");
	while (left(f) && (f->text[f->pos] == ' ' || f->text[f->pos] == '\t'))
		f->pos++;
	if (left(f) && f->text[f->pos] == '"')
		for (f->pos++; n < left(f) && !strchr("\"\\\n", f->text[f->pos + n]); n++)
			;
	if (n == 0 || n >= sizeof(name) || n == left(f) || f->text[f->pos + n] != '"') {
		fail(s, "@include needs a file name in quotes");
		return;
	}
	memcpy(name, f->text + f->pos, n);
	name[n] = '\0';
	f->pos += n + 1;
	while (left(f) && f->text[f->pos] != '\n') {
		if (f->text[f->pos] == '#' || starts(f, "//"))
			skip_line_comment(f);
		else if (!isspace((unsigned char)f->text[f->pos++])) {
			fail(s, "nothing may follow the file name of @include");
			return;
		}
	}
	if (name[0] == '/' || !slash)
		snprintf(path, sizeof(path), "%s", name);
	else
		snprintf(path, sizeof(path), "%.*s%s",
			 (int)(slash - here + 1 < 1000 ? slash - here + 1 : 0), here, name);
	include_file(s, path);
}

static bool at_line_start(const struct open_file *f)
{
	size_t i = f->pos;

	while (i > 0 && (f->text[i - 1] == ' ' || f->text[i - 1] == '\t'))
		i--;
	return i == 0 || f->text[i - 1] == '\n';
}

static void take_bracket(struct scan *s, char c)
{
	bool opens = c == '{' || c == '(' || c == '[';

	if (opens && ++s->nesting > CONF_NESTING_MAX) {
		fail(s, "nested more than 16 levels deep");
		return;
	}
	if (!opens && s->nesting > 0)
		s->nesting--;
	take(s);
}

static void step(struct scan *s)
{
	struct open_file *f = top_of(s);
	char c = f->text[f->pos];
	char next = left(f) > 1 ? f->text[f->pos + 1] : '\0';

	if (c == '#' || starts(f, "//"))
		skip_line_comment(f);
	else if (starts(f, "/*"))
		skip_block_comment(s);
	else if (c == '"')
		take_string(s);
	else if (c == '@' && starts(f, "@include") && at_line_start(f))
		take_include(s);
	else if (isalpha((unsigned char)c) || c == '*' || c == '_')
		take_name(s);
	else if (isdigit((unsigned char)c) || ((c == '-' || c == '+' || c == '.') &&
					       (isdigit((unsigned char)next) || next == '.')))
		take_number(s);
	else if (c != '\0' && strchr("{}()[]", c))
		take_bracket(s, c);
	else
		take(s);
}

bool conf_source_read(struct conf_source *src, const char *path, const char *text, size_t len,
		      struct conf_report *rep)
{
	struct scan s = {.src = src, .rep = rep};
	struct stat st = {0};
	char *bytes;

	memset(src, 0, sizeof(*src));
	if (text) {
		bytes = malloc(len + 1);
		if (bytes)
			memcpy(bytes, text, len);
		else
			conf_report_add(rep, path, 0, "no memory");
	} else {
		bytes = conf_file_read(path, &len, &st, rep);
	}
	if (!bytes)
		return false;
	push(&s, path, bytes, len, &st);
	while (s.depth > 0) {
		if (!s.bad && left(top_of(&s)) > 0) {
			step(&s);
			continue;
		}
		if (!s.bad && src->len > 0 && src->text[src->len - 1] != '\n')
			emit(&s, "\n", 1);
		free(top_of(&s)->text);
		s.depth--;
	}
	return !s.bad;
}

void conf_source_free(struct conf_source *src)
{
	for (unsigned i = 0; i < src->n_files; i++)
		free(src->files[i].name);
	free(src->text);
	free(src->lines);
	memset(src, 0, sizeof(*src));
}

const char *conf_source_at(const struct conf_source *src, unsigned text_line, unsigned *line)
{
	if (text_line == 0 || text_line > src->n_lines) {
		*line = 0;
		return src->files[0].name;
	}
	*line = src->lines[text_line - 1].line;
	return src->files[src->lines[text_line - 1].file].name;
}

bool conf_source_changed(const struct conf_source_file *files, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct conf_source_file *f = &files[i];
		struct stat st;

		if (f->ino == 0)
			continue;
		if (stat(f->name, &st) != 0 || st.st_dev != f->dev || st.st_ino != f->ino ||
		    st.st_size != f->size || st.st_mtim.tv_sec != f->mtime.tv_sec ||
		    st.st_mtim.tv_nsec != f->mtime.tv_nsec)
			return true;
	}
	return false;
}
