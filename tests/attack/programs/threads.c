/* threads: what a libc does to make threads and processes; all of it has to work where clone3(2) answers ENOSYS. */
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void *work(void *arg)
{
	return (char *)arg + 1;
}

static int spawned(const char *program, char *const *argv)
{
	int status = -1;
	pid_t pid;

	if (posix_spawn(&pid, program, NULL, NULL, argv, environ) != 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

int main(int argc, char **argv)
{
	static char base[64];
	pthread_t threads[64];
	char *const child[] = { argv[0], "child", NULL };
	int joined = 0;

	if (argc > 1)
		return 7;
	for (int i = 0; i < 64; i++)
		if (pthread_create(&threads[i], NULL, work, base + i) != 0)
			return 1;
	for (int i = 0; i < 64; i++) {
		void *got;
		joined += pthread_join(threads[i], &got) == 0 && got == base + i + 1;
	}
	printf("threads %d\n", joined);
	printf("spawn %d\n", WEXITSTATUS(spawned(argv[0], child)));
	printf("system %d\n", WEXITSTATUS(system("exit 5")));
	FILE *pipe = popen("echo popen", "r");
	char line[32] = "";
	if (!pipe || !fgets(line, sizeof(line), pipe) || pclose(pipe) != 0)
		return 2;
	printf("%s", line);
	return 0;
}
