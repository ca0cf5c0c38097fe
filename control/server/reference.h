/* SPDX-License-Identifier: BSD-3-Clause */
/* The method reference of docs/management-protocol.md, from the method table. */
#ifndef SPL_CONTROL_SERVER_REFERENCE_H
#define SPL_CONTROL_SERVER_REFERENCE_H

#include <stdio.h>

#define MGMT_REFERENCE_BEGIN "<!-- methods -->\n"
#define MGMT_REFERENCE_END   "<!-- end of methods -->\n"

/* Writes what stands between the two marks. */
void mgmt_reference_write(FILE *f);

#endif
