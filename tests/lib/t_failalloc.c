/* SPDX-License-Identifier: BSD-3-Clause */
/* The n-th allocation fails: see t_failalloc.h. State is per thread; linked with --wrap. */
#include "tests/lib/t_failalloc.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
int __real_posix_memalign(void **p, size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

static _Thread_local struct {
	unsigned at, count;
	bool hit;
} fail;

void t_fail_at(unsigned n)
{
	fail.at = n;
	fail.count = 0;
	fail.hit = false;
}

void t_fail_stop(void)
{
	fail.at = 0;
}

bool t_fail_hit(void)
{
	return fail.hit;
}

bool t_fail_more(const unsigned *n)
{
	return *n == 1 || fail.hit;
}

unsigned t_fail_count(void)
{
	return fail.count;
}

static bool strikes(void)
{
	fail.count++;
	if (fail.at == 0 || fail.count != fail.at)
		return false;
	fail.hit = true;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return strikes() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return strikes() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return strikes() ? NULL : __real_realloc(p, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return strikes() ? NULL : __real_aligned_alloc(align, size);
}

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
	return strikes() ? ENOMEM : __real_posix_memalign(p, align, size);
}

char *__wrap_strndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = __wrap_malloc(len + 1);

	if (!p)
		return NULL;
	memcpy(p, s, len);
	p[len] = '\0';
	return p;
}

char *__wrap_strdup(const char *s)
{
	return __wrap_strndup(s, strlen(s));
}
