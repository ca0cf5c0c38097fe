# SPDX-License-Identifier: BSD-3-Clause
"""Which calls are banned where, for check-hot and check-pure."""
import re

import house

MEMORY = r'malloc calloc realloc reallocarray free strdup strndup asprintf vasprintf alloca ' \
         r'posix_memalign aligned_alloc rte_\w*malloc\w* rte_calloc\w* rte_realloc\w* rte_free ' \
         r'rte_mempool_create\w* rte_pktmbuf_pool_create\w*'
FORMAT = r'v?printf v?fprintf v?sprintf v?snprintf v?dprintf puts fputs putchar perror syslog ' \
         r'rte_log rte_vlog RTE_LOG\w* rte_hexdump rte_pktmbuf_dump strerror\w* ' \
         r'log_(?:error|warn|warning|info|debug|notice)\w* spl_log\w* SPL_LOG\w*'
LOCK = r'pthread_\w+ sem_\w+ mtx_\w+ cnd_\w+ call_once rte_spinlock_\w+ rte_rwlock_\w+ ' \
       r'rte_ticketlock_\w+ rte_mcslock_\w+ rte_pflock_\w+ rte_seqlock_write_\w+ ' \
       r'rte_rcu_qsbr_synchronize'
SYSCALL = r'open openat creat close read pread readv write pwrite writev send sendto sendmsg ' \
          r'sendmmsg recv recvfrom recvmsg recvmmsg socket bind listen accept accept4 connect ' \
          r'shutdown ioctl fcntl poll ppoll select pselect epoll_\w+ eventfd\w* timerfd_\w+ ' \
          r'signalfd mmap munmap mprotect madvise mlock\w* fork vfork exec\w+ system popen ' \
          r'fopen fclose fread fwrite fflush fgets getline getrandom getenv setenv syscall ' \
          r'usleep sleep nanosleep clock_nanosleep sched_yield rte_delay_\w+ kill raise'
TIME = r'time gettimeofday clock clock_gettime clock_getres ftime localtime\w* gmtime\w* ' \
       r'strftime rte_get_timer_cycles'
CHANCE = r'rand rand_r random srand srandom drand48 rte_rand rte_rand_max'


def pattern(*groups):
    words = '|'.join(' '.join(groups).split())
    return re.compile(r'(?<![\w.>])(' + words + r')\s*\(')


def calls(path, text, banned, waiver=None):
    """Findings for banned calls in C text; calls through a pointer (x->read(...)) are not meant."""
    found = []
    whole = text.split('\n')
    for n, line in enumerate(house.bare_c(text).split('\n'), 1):
        if line.startswith('#'):
            continue
        for m in banned.finditer(line):
            if not (waiver and waiver.search(whole[n - 1])):
                found.append('%s:%d: calls %s' % (path, n, m.group(1)))
    return found
