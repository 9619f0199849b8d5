/* who: prints the ids that this program runs with; the tests make it setuid and setgid. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	printf("%d %d %d %d\n", getuid(), geteuid(), getgid(), getegid());
	return 0;
}
