/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the configuration file and its @include files into one text for libconfig.
 *
 * libconfig 1.5 has traps that it does not report: an integer of more than 32 bits wraps, 0660 is
 * read as decimal, a NUL byte cuts a string, deep nesting exhausts memory, an include cycle blames
 * the wrong line. So the text is looked through once before: each integer is checked against 64
 * bits and handed on with the suffix L; the rest of those is an error with its file and line.
 * Syntax is left to libconfig. Reads files; single-threaded.
 */
#ifndef SPL_CONTROL_CONFIG_SCAN_H
#define SPL_CONTROL_CONFIG_SCAN_H

#include "control/config/config.h"

#define CONF_FILE_MAX	  1048576 /* bytes of one file */
#define CONF_FILES_MAX	  64
#define CONF_INCLUDES_MAX 10 /* levels */
#define CONF_NESTING_MAX  16

struct conf_source_file {
	char *name;
	dev_t dev; /* dev and ino are 0 for text that is not in a file */
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

struct conf_source {
	char *text; /* NUL-terminated */
	size_t len, cap;
	struct conf_line {
		unsigned file, line; /* index into files; from 1 */
	} * lines;		     /* where line i + 1 of text came from */
	unsigned n_lines, cap_lines;
	struct conf_source_file files[CONF_FILES_MAX];
	unsigned n_files;
};

/* Fills `src` from the file `path`, or from `text` (NULL = read `path`) whose name is `path`.
 * False with an error in `rep`; `src` must be freed with conf_source_free() either way. */
bool conf_source_read(struct conf_source *src, const char *path, const char *text, size_t len,
		      struct conf_report *rep);
void conf_source_free(struct conf_source *src);

/* File and line of a line of src->text, as libconfig counts; *line is 0 when out of range. */
const char *conf_source_at(const struct conf_source *src, unsigned text_line, unsigned *line);

/* True when a file of `src` is not any more what was read. */
bool conf_source_changed(const struct conf_source_file *files, unsigned n);

/* Adds an error; `file` is copied. */
void conf_report_add(struct conf_report *rep, const char *file, unsigned line, const char *format,
		     ...) __attribute__((format(printf, 4, 5)));

#endif
