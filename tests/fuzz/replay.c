/* replay.c: runs a fuzz target over every file of a directory, so that the corpus is an ordinary test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rbe");
	size_t cap = (size_t)16 << 20, len;

	if (!f)
		return -1;
	/* exactly as long as the input: a read behind its end is a fault that a sanitizer sees */
	uint8_t *whole = malloc(cap);
	len = whole ? fread(whole, 1, cap, f) : 0;
	(void)fclose(f);
	uint8_t *exact = malloc(len ? len : 1);
	if (whole && exact) {
		memcpy(exact, whole, len);
		(void)LLVMFuzzerTestOneInput(exact, len);
	}
	free(whole);
	free(exact);
	return 0;
}

int main(int argc, char **argv)
{
	char path[4096];
	int count = 0;

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		for (struct dirent *e; dir && (e = readdir(dir));) {
			if (e->d_name[0] == '.')
				continue;
			(void)snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			if (replay_file(path) == 0)
				count++;
		}
		if (dir)
			(void)closedir(dir);
	}
	(void)printf("%d passed, %d failed\n", count, count == 0);
	return count == 0; /* an empty corpus is a mistake, not a success */
}
