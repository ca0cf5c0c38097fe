/* SPDX-License-Identifier: BSD-3-Clause */
/* See log.h. State is one descriptor and one level, both atomic. */
#include "common/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Atomic int log_fd = STDERR_FILENO;
static _Atomic int log_max = LOG_LEVEL_INFO;

static const char *const names[] = {"error", "warn", "info", "debug"};

void log_open(int fd, enum log_level level)
{
	atomic_store_explicit(&log_fd, fd, memory_order_relaxed);
	log_set_level(level);
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&log_max, (int)level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
	return (enum log_level)atomic_load_explicit(&log_max, memory_order_relaxed);
}

const char *log_level_name(enum log_level level)
{
	return names[level <= LOG_LEVEL_DEBUG ? level : LOG_LEVEL_DEBUG];
}

bool log_level_parse(const char *name, enum log_level *level)
{
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0) {
			*level = (enum log_level)i;
			return true;
		}
	}
	return false;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Copies `text` with control characters as \xNN; stops before `cap` bytes. */
static size_t escape(char *out, size_t cap, const char *text)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= 0x20 && c != 0x7f) {
			if (n + 1 > cap)
				break;
			out[n++] = (char)c;
			continue;
		}
		if (n + 4 > cap)
			break;
		memcpy(out + n, "\\x", 2);
		out[n + 2] = hex[c >> 4];
		out[n + 3] = hex[c & 15];
		n += 4;
	}
	return n;
}

static void __attribute__((format(printf, 4, 0)))
write_line(enum log_level level, const char *module, uint64_t suppressed, const char *fmt,
	   va_list ap)
{
	char text[LOG_LINE_MAX], line[LOG_LINE_MAX];
	uint64_t t = now_ns();
	int head;
	size_t n;

	vsnprintf(text, sizeof(text), fmt, ap);
	head = snprintf(line, 128, "%llu.%06llu %s %s: ", (unsigned long long)(t / 1000000000u),
			(unsigned long long)(t / 1000 % 1000000), log_level_name(level), module);
	n = head < 128 ? (size_t)head : 127;
	n += escape(line + n, sizeof(line) - n - 48, text);
	if (suppressed)
		n += (size_t)snprintf(line + n, 40, " suppressed=%llu",
				      (unsigned long long)suppressed);
	line[n++] = '\n';
	if (write(atomic_load_explicit(&log_fd, memory_order_relaxed), line, n) < 0)
		return; /* nowhere to say so */
}

void log_line(enum log_level level, const char *module, const char *fmt, ...)
{
	va_list ap;

	if (level > log_get_level())
		return;
	va_start(ap, fmt);
	write_line(level, module, 0, fmt, ap);
	va_end(ap);
}

bool log_rate_take(struct log_rate *r, uint64_t now, uint64_t *suppressed)
{
	uint64_t step = (uint64_t)r->every_ms * 1000000u;
	uint64_t from = r->until_ns > now ? r->until_ns : now;

	if (from + step > now + step * r->burst) {
		r->suppressed++;
		return false;
	}
	r->until_ns = from + step;
	*suppressed = r->suppressed;
	r->suppressed = 0;
	return true;
}

void log_limited(struct log_rate *r, enum log_level level, const char *module, const char *fmt, ...)
{
	uint64_t suppressed;
	va_list ap;

	if (level > log_get_level() || !log_rate_take(r, now_ns(), &suppressed))
		return;
	va_start(ap, fmt);
	write_line(level, module, suppressed, fmt, ap);
	va_end(ap);
}
