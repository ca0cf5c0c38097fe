/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C (Castagnoli), the check at the end of every stored row. Pure; any thread. */
#ifndef SPL_CONTROL_AUTHORITY_CRC32C_H
#define SPL_CONTROL_AUTHORITY_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of n bytes; as in RFC 3720: "123456789" gives 0xe3069283. */
uint32_t crc32c(const void *p, size_t n);

#endif
