/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening one configuration file: whether it can be trusted, and its bytes. Blocking reads; called
 * at start and by the checker only. */
#include "control/config/file.h"
#include "common/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool trusted(const char *path, const struct stat *st, struct conf_report *rep)
{
	if (!S_ISREG(st->st_mode))
		conf_report_add(rep, path, 0, "is not a regular file");
	else if (st->st_uid != 0 && st->st_uid != geteuid())
		conf_report_add(rep, path, 0,
				"belongs to uid %u, neither root nor the user of this process",
				(unsigned)st->st_uid);
	else if (st->st_mode & 022)
		conf_report_add(rep, path, 0, "may be written by others (mode %04o): chmod go-w",
				(unsigned)st->st_mode & 07777);
	else if (st->st_size > CONF_FILE_MAX)
		conf_report_add(rep, path, 0, "is too large: %lld bytes (max %d)",
				(long long)st->st_size, CONF_FILE_MAX);
	else
		return true;
	return false;
}

/* Reads to the end, at most one byte more than allowed; -errno on failure. */
static ssize_t read_all(int fd, char *buf)
{
	size_t n = 0;

	while (n <= CONF_FILE_MAX) {
		ssize_t got = read(fd, buf + n, CONF_FILE_MAX + 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	return (ssize_t)n;
}

char *conf_file_read(const char *path, size_t *len, struct stat *st, struct conf_report *rep)
{
	char *buf = NULL;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0) {
		conf_report_add(rep, path, 0, "cannot open: %s", strerror(errno));
		return NULL;
	}
	if (fstat(fd, st) != 0) {
		conf_report_add(rep, path, 0, "cannot stat: %s", strerror(errno));
		goto close_fd;
	}
	if (!trusted(path, st, rep))
		goto close_fd;
	buf = malloc(CONF_FILE_MAX + 1);
	n = buf ? read_all(fd, buf) : -ENOMEM;
	if (n < 0) {
		conf_report_add(rep, path, 0, "cannot read: %s", strerror((int)-n));
	} else if (n > CONF_FILE_MAX) {
		conf_report_add(rep, path, 0, "is too large (max %d bytes)", CONF_FILE_MAX);
	} else {
		*len = (size_t)n;
		close(fd);
		return buf;
	}
	free(buf);
close_fd:
	close(fd);
	return NULL;
}

static unsigned line_at(const char *text, size_t at)
{
	unsigned line = 1;

	for (size_t i = 0; i < at; i++)
		line += text[i] == '\n';
	return line;
}

bool conf_text_is_clean(const char *name, const char *text, size_t len, struct conf_report *rep)
{
	const char *nul = memchr(text, '\0', len);
	size_t good;

	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		conf_report_add(rep, name, 1,
				"begins with a byte order mark: save it as UTF-8 without one");
		return false;
	}
	if (nul) {
		conf_report_add(rep, name, line_at(text, (size_t)(nul - text)), "a NUL byte");
		return false;
	}
	good = utf8_valid_bytes(text, len);
	if (good != len) {
		conf_report_add(rep, name, line_at(text, good), "not valid UTF-8");
		return false;
	}
	return true;
}
