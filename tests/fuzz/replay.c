/* SPDX-License-Identifier: BSD-3-Clause */
/* main() of the fuzz targets when they are not built for libFuzzer: replays files and folders.
 *
 * Each file is fed as it is, and if it is short also cut at every byte and with each byte damaged
 * three ways: a cheap, repeatable piece of fuzzing. No file at all is a failure. Single-threaded.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX  (4u << 20)
#define SHORT_MAX 2048u /* files up to here are also cut and damaged */

static unsigned files;
static unsigned long inputs;

/* From memory of exactly its length, so that a sanitizer sees a read behind the end. */
static void feed(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len);

	FUZZ_CHECK(copy || len == 0);
	if (len)
		memcpy(copy, bytes, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
	inputs++;
}

static void feed_variants(uint8_t *bytes, size_t len)
{
	static const uint8_t damage[] = {0x01, 0x80, 0xff};

	for (size_t i = 0; i < len; i++) {
		feed(bytes, i);
		for (unsigned k = 0; k < sizeof(damage); k++) {
			bytes[i] ^= damage[k];
			feed(bytes, len);
			bytes[i] ^= damage[k];
		}
	}
}

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = malloc(FILE_MAX);
	size_t len;

	if (!f || !bytes) {
		fprintf(stderr, "%s: cannot read it\n", path);
		free(bytes);
		return -1;
	}
	len = fread(bytes, 1, FILE_MAX, f);
	fclose(f);
	feed(bytes, len);
	if (len <= SHORT_MAX)
		feed_variants(bytes, len);
	free(bytes);
	files++;
	return 0;
}

static int replay_folder(const char *path)
{
	struct dirent **names;
	int n = scandir(path, &names, NULL, alphasort), err = n < 0 ? -1 : 0;
	char full[4096];

	for (int i = 0; i < n; i++) {
		if (!err && names[i]->d_name[0] != '.') {
			snprintf(full, sizeof(full), "%s/%s", path, names[i]->d_name);
			err = replay_file(full);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return err;
}

int main(int argc, char **argv)
{
	struct stat st;

	for (int i = 1; i < argc; i++) {
		if (stat(argv[i], &st)) {
			perror(argv[i]);
			return 1;
		}
		if (S_ISDIR(st.st_mode) ? replay_folder(argv[i]) : replay_file(argv[i]))
			return 1;
	}
	printf("%u files, %lu inputs\n", files, inputs);
	return files == 0;
}
