/* SPDX-License-Identifier: BSD-3-Clause */
/* Same names as <spotlane/ids.h>; here so that code inside the house includes one place. */
#ifndef SPL_COMMON_IDS_H
#define SPL_COMMON_IDS_H
#include <spotlane/ids.h>
#endif
