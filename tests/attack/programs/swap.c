/* swap A B: exchanges two names, for ever (renameat2(2), RENAME_EXCHANGE). Says so once it works. */
#define RENAME_EXCHANGE_FLAG 2
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	for (long n = 0;; n++) {
		if (syscall(SYS_renameat2, AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE_FLAG) < 0) {
			perror("renameat2");
			return 1;
		}
		if (n == 0)
			(void)!write(1, "swapping\n", 9);
	}
}
