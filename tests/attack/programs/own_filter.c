/* own_filter MODE: installs a seccomp filter of its own over the box's, then calls mount(2).
 * The kernel takes the most restrictive answer of all filters (seccomp(2)), so none of this may let the call through. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void trapped(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	printf("trapped %d\n", info->si_syscall == SYS_mount);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	unsigned answer = SECCOMP_RET_ALLOW;
	unsigned long flags = 0;

	if (strcmp(mode, "errno") == 0)
		answer = SECCOMP_RET_ERRNO | 77;
	else if (strcmp(mode, "trap") == 0)
		answer = SECCOMP_RET_TRAP;
	else if (strcmp(mode, "trace") == 0)
		answer = SECCOMP_RET_TRACE;
	else if (strcmp(mode, "log") == 0)
		answer = SECCOMP_RET_LOG;
	else if (strcmp(mode, "listener") == 0) {
		answer = SECCOMP_RET_USER_NOTIF;
		flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	}
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mount, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };
	struct sigaction action = { .sa_sigaction = trapped, .sa_flags = SA_SIGINFO };

	if (strcmp(mode, "trap") == 0)
		(void)sigaction(SIGSYS, &action, NULL);
	errno = 0;
	long rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	printf("filter %d\n", rc < 0 ? errno : 0);
	fflush(stdout);
	errno = 0;
	int done = mount("none", "/tmp", "tmpfs", 0, NULL);
	printf("mount %d %d\n", done, errno);
	return 0;
}
