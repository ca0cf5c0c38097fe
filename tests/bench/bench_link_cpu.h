/* SPDX-License-Identifier: BSD-3-Clause */
/* Processor time of the link engine on its own, for the eye: nanoseconds a packet and a message. */
#ifndef SPL_BENCH_LINK_CPU_H
#define SPL_BENCH_LINK_CPU_H

#include <stdbool.h>

/* Prints a table. False when the engine did not take what it was given. */
bool bench_link_cpu(void);

#endif
