/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that ends at a page which may not be touched: a read of one byte too many is a SIGSEGV in
 * every build, not only under a sanitizer. Maps at first use, keeps it until the program ends; one
 * thread.
 */
#ifndef SPL_T_GUARD_H
#define SPL_T_GUARD_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define T_GUARD_BYTES 131072u /* the most that t_guard() can place */

/* A copy of len bytes whose end is the end of accessible memory. Valid until the next call. */
static inline uint8_t *t_guard(const void *bytes, size_t len)
{
	static uint8_t *base;

	if (!base) {
		base = mmap(NULL, T_GUARD_BYTES + 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (base == MAP_FAILED || mprotect(base + T_GUARD_BYTES, 4096, PROT_NONE))
			abort();
	}
	if (len > T_GUARD_BYTES)
		abort();
	if (len)
		memcpy(base + T_GUARD_BYTES - len, bytes, len);
	return base + T_GUARD_BYTES - len;
}

#endif
