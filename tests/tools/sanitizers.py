# SPDX-License-Identifier: BSD-3-Clause
"""The environment in which programs with sanitizers run, for `run-suite` and tests/plants/run."""
import os


def sanitizer_env(root):
    tools = os.path.join(root, 'tests', 'tools')
    return {
        'ASAN_OPTIONS': 'detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1',
        'LSAN_OPTIONS': 'print_suppressions=0:suppressions=%s/lsan.supp' % tools,
        'UBSAN_OPTIONS': 'print_stacktrace=1:halt_on_error=1',
        'TSAN_OPTIONS': 'ignore_noninstrumented_modules=1:halt_on_error=1:'
                        'suppressions=%s/tsan.supp' % tools,
    }
