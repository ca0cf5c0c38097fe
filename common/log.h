/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of a daemon: one line an event on one descriptor, stderr unless log_open() says else.
 *
 *	12.345678 warn dplink: dataplane is gone pid=4711 epoch=8c1f…
 *
 * Seconds of CLOCK_MONOTONIC, level, module, what happened, key=value tail. A line is one write of
 * at most LOG_LINE_MAX bytes, so lines of several threads and processes do not mix; control
 * characters in it are escaped, so that a name from outside cannot forge a line. Never on a lane.
 * Any thread; nothing here fails: a line that cannot be written is lost.
 */
#ifndef SPL_COMMON_LOG_H
#define SPL_COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_LINE_MAX 1024

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* The descriptor stays the caller's. */
void log_open(int fd, enum log_level level);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* "error", "warn", "info", "debug". */
const char *log_level_name(enum log_level level);
/* False when `name` is none of them; *level is untouched then. */
bool log_level_parse(const char *name, enum log_level *level);

/* Writes a line when `level` is on. */
void log_line(enum log_level level, const char *module, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define log_error(module, ...) log_line(LOG_LEVEL_ERROR, module, __VA_ARGS__)
#define log_warn(module, ...)  log_line(LOG_LEVEL_WARN, module, __VA_ARGS__)
#define log_info(module, ...)  log_line(LOG_LEVEL_INFO, module, __VA_ARGS__)
#define log_debug(module, ...) log_line(LOG_LEVEL_DEBUG, module, __VA_ARGS__)

/* The rate limit beside a noisy call: a token bucket. One thread uses it. */
struct log_rate {
	uint32_t burst;	   /* lines at once; const */
	uint32_t every_ms; /* one more line after this time; const */
	uint64_t until_ns; /* the bucket's debt is paid then */
	uint64_t suppressed;
};

#define LOG_RATE(burst_, every_ms_) \
	{ \
		.burst = (burst_), .every_ms = (every_ms_) \
	}

/* True when a line may be written now; *suppressed is then the number of lines that were held back
 * since the last one. `now_ns` never goes back. */
bool log_rate_take(struct log_rate *r, uint64_t now_ns, uint64_t *suppressed);

/* log_line() under a rate limit; adds suppressed=N when lines were held back. */
void log_limited(struct log_rate *r, enum log_level level, const char *module, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
