#include "filter.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/personality.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seccomp_list.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5) /* 5.19 */
#endif

#define NAMESPACE_FLAGS                                                                         \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
	 CLONE_NEWNET)

/* ---- the allowlist, by libseccomp ---- */

/* The kernel takes these arguments as 32 bits, so the upper half must not matter here either. */
static struct scmp_arg_cmp is_value(unsigned arg, unsigned value)
{
	return (struct scmp_arg_cmp){ .arg = arg, .op = SCMP_CMP_MASKED_EQ, .datum_a = 0xffffffff, .datum_b = value };
}

static int allow_socket_families(scmp_filter_ctx ctx)
{
	static const unsigned families[] = { AF_UNIX, AF_INET, AF_INET6 };
	int rc = 0;

	/* AF_ALG with splice has written into the page cache, AF_VSOCK reaches the hypervisor. */
	for (size_t i = 0; i < KS_COUNT(families); i++)
		rc |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
				       is_value(0, families[i]));
	return rc | seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
				     is_value(0, AF_NETLINK), is_value(2, NETLINK_ROUTE));
}

static int allow_personalities(scmp_filter_ctx ctx)
{
	static const unsigned values[] = { PER_LINUX, PER_LINUX32, UNAME26, PER_LINUX32 | UNAME26, 0xffffffff };
	int rc = 0;

	for (size_t i = 0; i < KS_COUNT(values); i++)
		rc |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(personality), 1,
				       is_value(0, values[i]));
	return rc;
}

static bool hides_memory(const char *call)
{
	static const char *const calls[] = { "memfd_create", "shmget", "shmat", "shmctl", "shmdt" };

	for (size_t i = 0; i < KS_COUNT(calls); i++)
		if (strcmp(call, calls[i]) == 0)
			return true;
	return false;
}

static int fill_allowlist(scmp_filter_ctx ctx, unsigned flags)
{
	static const char *const allowed[] = { KS_ALLOWED_CALLS };
	static const int escape[] = { KS_ESCAPE_CALLS, SYS_unshare };
	int rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);

	rc |= seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	for (size_t i = 0; i < KS_COUNT(allowed); i++) {
		int nr = seccomp_syscall_resolve_name(allowed[i]);
		if (nr != __NR_SCMP_ERROR && !(flags & KS_FILTER_NO_HIDDEN_MEMORY && hides_memory(allowed[i])))
			rc |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
	}
	for (size_t i = 0; i < KS_COUNT(escape); i++)
		rc |= seccomp_rule_add(ctx, SCMP_ACT_ALLOW, escape[i], 0);
	return rc | allow_socket_families(ctx) | allow_personalities(ctx);
}

/* Compiling costs 2 ms, the exported program is what gets loaded. */
static int export_program(scmp_filter_ctx ctx, struct ks_filter *ret_filter)
{
	KS_AUTOCLOSE int fd = memfd_create("filter", MFD_CLOEXEC);
	KS_AUTOFREE void *code = NULL;
	struct stat st;

	if (fd < 0 || seccomp_export_bpf(ctx, fd) < 0 || fstat(fd, &st) < 0)
		return -EIO;
	code = malloc((size_t)st.st_size);
	if (!code || pread(fd, code, (size_t)st.st_size, 0) != st.st_size)
		return -EIO;
	ret_filter->count = (unsigned short)((size_t)st.st_size / sizeof(struct sock_filter));
	ret_filter->code = KS_TAKE_PTR(code);
	return 0;
}

int ks_filter_allowlist(unsigned flags, struct ks_filter *ret_filter, struct ks_error *err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int rc = ctx ? fill_allowlist(ctx, flags) : -ENOMEM;

	if (rc == 0)
		rc = export_program(ctx, ret_filter);
	seccomp_release(ctx);
	return rc ? ks_fail(err, KS_E_HOST_UNSUPPORTED, "libseccomp cannot build the system call allowlist") : 0;
}

/* ---- the second filter, by hand: a binary tree, because loading cost goes by its length and each call by its depth ---- */

enum verdict { NOTIFY, NO_SUCH_CALL, CLONE_ARGS, UNSHARE_ARGS, IOCTL_ARGS, VERDICT_COUNT };

struct rule {
	int nr;
	enum verdict verdict;
};

struct program {
	struct sock_filter code[256];
	unsigned char jump_to[256]; /* verdict + 1 whose block a true comparison goes to */
	unsigned short count;
};

static void emit(struct program *p, unsigned code, unsigned k, unsigned jt, unsigned jf)
{
	p->code[p->count++] = (struct sock_filter){ (unsigned short)code, (unsigned char)jt, (unsigned char)jf, k };
}

static void emit_return(struct program *p, unsigned value)
{
	emit(p, BPF_RET | BPF_K, value, 0, 0);
}

static void emit_tree(struct program *p, const struct rule *rules, size_t count)
{
	if (count <= 2) {
		for (size_t i = 0; i < count; i++) {
			p->jump_to[p->count] = (unsigned char)(rules[i].verdict + 1);
			emit(p, BPF_JMP | BPF_JEQ | BPF_K, (unsigned)rules[i].nr, 0, 0);
		}
		emit_return(p, SECCOMP_RET_ALLOW);
		return;
	}
	size_t half = count / 2;
	unsigned short at = p->count;
	emit(p, BPF_JMP | BPF_JGE | BPF_K, (unsigned)rules[half].nr, 0, 0);
	emit_tree(p, rules, half);
	p->code[at].jt = (unsigned char)(p->count - at - 1);
	emit_tree(p, rules + half, count - half);
}

/* notify when one of `flags` is set in the first argument */
static void emit_flag_test(struct program *p, unsigned flags)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]), 0, 0);
	emit(p, BPF_JMP | BPF_JSET | BPF_K, flags, 0, 1);
	emit_return(p, SECCOMP_RET_USER_NOTIF);
	emit_return(p, SECCOMP_RET_ALLOW);
}

static void emit_block(struct program *p, enum verdict verdict)
{
	switch (verdict) {
	case NOTIFY:
		emit_return(p, SECCOMP_RET_USER_NOTIF);
		break;
	case NO_SUCH_CALL: /* glibc and musl fall back to clone, whose flags a filter can read */
		emit_return(p, SECCOMP_RET_ERRNO | ENOSYS);
		break;
	case CLONE_ARGS:
		emit_flag_test(p, NAMESPACE_FLAGS);
		break;
	case UNSHARE_ARGS:
		emit_flag_test(p, NAMESPACE_FLAGS | CLONE_NEWTIME);
		break;
	case IOCTL_ARGS: /* the kernel looks at the low 32 bits of the request only, so do we */
		emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]), 0, 0);
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 2, 0);
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, TIOCLINUX, 1, 0);
		emit_return(p, SECCOMP_RET_ALLOW);
		emit_return(p, SECCOMP_RET_ERRNO | EPERM);
		break;
	case VERDICT_COUNT:
		break;
	}
}

static int by_number(const void *a, const void *b)
{
	return ((const struct rule *)a)->nr - ((const struct rule *)b)->nr;
}

static void emit_all(struct program *p, const struct rule *rules, size_t count)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	emit_tree(p, rules, count);
	unsigned short tree_end = p->count;
	for (int v = 0; v < VERDICT_COUNT; v++) {
		for (unsigned short i = 0; i < tree_end; i++)
			if (p->jump_to[i] == v + 1)
				p->code[i].jt = (unsigned char)(p->count - i - 1);
		emit_block(p, (enum verdict)v);
	}
}

int ks_filter_escape(struct ks_filter *ret_filter, struct ks_error *err)
{
	static const int escape[] = { KS_ESCAPE_CALLS };
	static struct program program;
	struct rule rules[64] = { { SYS_clone, CLONE_ARGS },
				  { SYS_unshare, UNSHARE_ARGS },
				  { SYS_clone3, NO_SUCH_CALL },
				  { SYS_ioctl, IOCTL_ARGS } };
	size_t count = 4;

	for (size_t i = 0; i < KS_COUNT(escape); i++)
		rules[count++] = (struct rule){ escape[i], NOTIFY };
	qsort(rules, count, sizeof(rules[0]), by_number);
	program.count = 0;
	emit_all(&program, rules, count);
	if (program.count > 200) /* jump offsets are 8 bits */
		return ks_fail(err, KS_E_INTERNAL, "the escape filter is too long");
	*ret_filter = (struct ks_filter){ program.code, program.count };
	return 0;
}

static int load(const struct ks_filter *filter, unsigned long flags)
{
	struct sock_fprog prog = { .len = filter->count, .filter = filter->code };
	int rc = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);

	return rc < 0 ? -errno : rc;
}

int ks_filter_load(const struct ks_filter *filter)
{
	return load(filter, 0);
}

int ks_filter_load_listener(const struct ks_filter *filter)
{
	return load(filter, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
}
