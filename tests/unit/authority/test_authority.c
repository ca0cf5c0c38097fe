/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the suites of the authority. */
#include "tests/unit/authority/suites.h"

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {suite_create,	 suite_trouble, suite_doubt, suite_close,
					 suite_host,	 suite_resume,	suite_dead,  suite_random,
					 suite_instance, suite_stop,	suite_log};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
