/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the Internet checksum (RFC 1071), inline. Pure; any thread.
 *
 * A sum is carried as 64 bits of native-order words, so that a buffer may be added in pieces; only
 * a piece of even length may be followed by another (csum_add_odd() takes the others).
 */
#ifndef SPL_FRAME_CSUM_H
#define SPL_FRAME_CSUM_H

#include "dataplane/frame/view.h"

#include <endian.h>

/* Two lanes of 64 bits, in whatever vector registers the machine has. */
typedef uint64_t csum_pair __attribute__((vector_size(16)));

/* Adds len bytes at p to sum. Words of 32 bits are added to 64: no carry is lost in less than 2^32
 * of them, and a frame has at most 64 KiB. */
static inline uint64_t csum_add(uint64_t sum, const uint8_t *p, size_t len)
{
	csum_pair low = {0, 0}, high = {0, 0}, x;
	uint32_t a;
	uint16_t w = 0;

	for (; len >= 16; p += 16, len -= 16) {
		memcpy(&x, p, 16);
		low += x & 0xffffffffu;
		high += x >> 32;
	}
	low += high;
	sum += low[0] + low[1];
	for (; len >= 4; p += 4, len -= 4) {
		memcpy(&a, p, 4);
		sum += a;
	}
	if (len & 2) {
		memcpy(&w, p, 2);
		sum += w;
		p += 2;
	}
	if (len & 1) { /* the high half of a big-endian word */
		w = 0;
		memcpy(&w, p, 1);
		sum += w;
	}
	return sum;
}

/* csum_add() over the 20 bytes of an IPv4 header without options. */
static inline uint64_t csum_header(const uint8_t *ip)
{
	uint32_t a, b, c, d, e;

	memcpy(&a, ip, 4);
	memcpy(&b, ip + 4, 4);
	memcpy(&c, ip + 8, 4);
	memcpy(&d, ip + 12, 4);
	memcpy(&e, ip + 16, 4);
	return (uint64_t)a + b + c + d + e;
}

/* Folds to 16 bits without complementing; 0xffff over data whose checksum field is right. */
static inline uint16_t csum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffffu) + (sum >> 32);
	sum = (sum & 0xffffffffu) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Adds a piece that starts at an odd offset of the whole. */
static inline uint64_t csum_add_odd(uint64_t sum, const uint8_t *p, size_t len)
{
	return sum + __builtin_bswap16(csum_fold(csum_add(0, p, len)));
}

/* The value for a checksum field, in the byte order of memory: store it with memcpy. */
static inline uint16_t csum_finish(uint64_t sum)
{
	return (uint16_t)~csum_fold(sum);
}

/* As csum_finish() for UDP, where a computed 0 is sent as 0xffff. */
static inline uint16_t csum_finish_udp(uint64_t sum)
{
	uint16_t c = csum_finish(sum);

	return c ? c : 0xffff;
}

/* The pseudo header of UDP from an IPv4 header at ip and the UDP length in bytes. */
static inline uint64_t csum_pseudo(const uint8_t *ip, uint16_t udp_len)
{
	uint32_t src, dst;

	memcpy(&src, ip + 12, 4);
	memcpy(&dst, ip + 16, 4);
	return (uint64_t)src + dst + htobe16(17) + htobe16(udp_len);
}

#endif
