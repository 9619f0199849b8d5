#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/personality.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5) /* 5.19 */
#endif

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "seccomp_list.h has no numbers for this architecture"
#endif

/* ---- the list ---- */

enum verdict { ALLOW, REFUSE, SETUP, REPORT, SOCKET, PERSONALITY, PRCTL, IOCTL, CLONE, UNSHARE, MODE_1, MODE_2, OPEN_1, OPEN_2,
	       TARGET, PRIORITY, IOPRIO };

static const struct rule {
	const char *name;
	int nr[2]; /* x86_64, aarch64; -1 none */
	enum verdict verdict;
	unsigned falls;
} rules[] = {
#define KS_RULE(name, x86_64, aarch64, verdict, falls, reason) { #name, { x86_64, aarch64 }, verdict, falls },
#include "seccomp_list.h"
#undef KS_RULE
};

static int number_of(const struct rule *rule, uint32_t arch)
{
	return rule->nr[arch == AUDIT_ARCH_AARCH64];
}

const char *ks_filter_call_name(int nr)
{
	for (size_t i = 0; i < KS_COUNT(rules); i++)
		if (nr >= 0 && number_of(&rules[i], NATIVE_ARCH) == nr)
			return rules[i].name;
	return NULL;
}

/* ---- blocks: how a program ends. The search below ends in one of them ---- */

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* Little-endian: the low half. The kernel takes these arguments as 32 bits, so the upper half must not matter here
 * either. */
#define LOAD_ARG(n) LOAD(args[n])
#define IF_EQ(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define IF_ANY_OF(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (yes), (no))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define RETURN_ERRNO(number) RETURN(SECCOMP_RET_ERRNO | (number))

/* clone(2): the low byte is the exit signal, so CLONE_NEWTIME cannot be asked for there, but by unshare */
#define NAMESPACE_FLAGS                                                                         \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
	 CLONE_NEWNET)

static const struct sock_filter allow_block[] = { RETURN(SECCOMP_RET_ALLOW) };
static const struct sock_filter no_such_call_block[] = { RETURN_ERRNO(ENOSYS) };
static const struct sock_filter notify_block[] = { RETURN(SECCOMP_RET_USER_NOTIF) };
static const struct sock_filter socket_block[] = {
	LOAD_ARG(0),
	IF_EQ(AF_UNIX, 5, 0),
	IF_EQ(AF_INET, 4, 0),
	IF_EQ(AF_INET6, 3, 0),
	IF_EQ(AF_NETLINK, 0, 3),
	LOAD_ARG(2),
	IF_EQ(NETLINK_ROUTE, 0, 2),
	RETURN(SECCOMP_RET_ALLOW),
	RETURN_ERRNO(EAFNOSUPPORT),
	RETURN_ERRNO(EPROTONOSUPPORT),
};
static const struct sock_filter untrusted_socket_block[] = {
	LOAD_ARG(0),
	IF_EQ(AF_UNIX, 6, 0),
	IF_EQ(AF_INET, 1, 0),
	IF_EQ(AF_INET6, 0, 5),
	LOAD_ARG(2),
	IF_EQ(IPPROTO_IP, 2, 0), /* 0: what is usual for the type */
	IF_EQ(IPPROTO_TCP, 1, 0),
	IF_EQ(IPPROTO_UDP, 0, 2),
	RETURN(SECCOMP_RET_ALLOW),
	RETURN_ERRNO(EAFNOSUPPORT),
	RETURN_ERRNO(EPROTONOSUPPORT),
};
static const struct sock_filter personality_block[] = {
	LOAD_ARG(0),
	IF_EQ(0xffffffff, 5, 0), /* the query */
	IF_EQ(PER_LINUX, 4, 0),
	IF_EQ(PER_LINUX32, 3, 0),
	IF_EQ(UNAME26, 2, 0),
	IF_EQ(PER_LINUX32 | UNAME26, 1, 0),
	RETURN_ERRNO(EPERM),
	RETURN(SECCOMP_RET_ALLOW),
};
static const struct sock_filter prctl_block[] = {
	LOAD_ARG(0),
	IF_EQ(PR_SET_MM, 4, 0),
	IF_EQ(PR_SET_SPECULATION_CTRL, 0, 2),
	LOAD_ARG(2),
	IF_EQ(PR_SPEC_ENABLE, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	RETURN_ERRNO(EPERM),
};
static const struct sock_filter ioctl_block[] = {
	LOAD_ARG(1),
	IF_EQ(TIOCSTI, 2, 0),
	IF_EQ(TIOCLINUX, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	RETURN_ERRNO(EPERM),
};
static const struct sock_filter clone_block[] = {
	LOAD_ARG(0),
	IF_ANY_OF(NAMESPACE_FLAGS, 0, 1),
	RETURN(SECCOMP_RET_USER_NOTIF),
	RETURN(SECCOMP_RET_ALLOW),
};
static const struct sock_filter unshare_block[] = {
	LOAD_ARG(0),
	IF_ANY_OF(NAMESPACE_FLAGS | CLONE_NEWTIME, 0, 1),
	RETURN(SECCOMP_RET_USER_NOTIF),
	RETURN(SECCOMP_RET_ALLOW),
};

#define SET_ID_BITS (04000 | 02000)
/* chmod(2) and its kind: the mode is the second argument, or the third */
#define MODE_BLOCK(arg) { LOAD_ARG(arg), IF_ANY_OF(SET_ID_BITS, 1, 0), RETURN(SECCOMP_RET_ALLOW), RETURN_ERRNO(EPERM) }
/* open(2): there is a mode only when a file may be made */
#define OPEN_BLOCK(flags, mode)                                                                                          \
	{ LOAD_ARG(flags), IF_ANY_OF(O_CREAT | (O_TMPFILE & ~O_DIRECTORY), 0, 2), LOAD_ARG(mode), IF_ANY_OF(SET_ID_BITS, 1, 0), \
	  RETURN(SECCOMP_RET_ALLOW), RETURN_ERRNO(EPERM) }
static const struct sock_filter mode_1_block[] = MODE_BLOCK(1);
static const struct sock_filter mode_2_block[] = MODE_BLOCK(2);
static const struct sock_filter open_1_block[] = OPEN_BLOCK(1, 2);
static const struct sock_filter open_2_block[] = OPEN_BLOCK(2, 3);
static const struct sock_filter target_block[] = {
	LOAD_ARG(0),
	IF_EQ(1, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	RETURN_ERRNO(EPERM),
};
/* setpriority(2), ioprio_set(2): which kind of target, and who */
#define WHICH_BLOCK(process, user)                                                                    \
	{ LOAD_ARG(0), IF_EQ(user, 4, 0), IF_EQ(process, 0, 2), LOAD_ARG(1), IF_EQ(1, 1, 0),          \
	  RETURN(SECCOMP_RET_ALLOW), RETURN_ERRNO(EPERM) }
static const struct sock_filter priority_block[] = WHICH_BLOCK(PRIO_PROCESS, PRIO_USER);
static const struct sock_filter ioprio_block[] = WHICH_BLOCK(1, 3); /* IOPRIO_WHO_PROCESS, IOPRIO_WHO_USER of linux/ioprio.h */

#define BLOCK(name) { name##_block, KS_COUNT(name##_block) }

static const struct block {
	const struct sock_filter *code;
	size_t count;
} blocks[] = {
	BLOCK(allow), BLOCK(no_such_call), BLOCK(notify), BLOCK(socket), BLOCK(untrusted_socket),
	BLOCK(personality), BLOCK(prctl), BLOCK(ioctl), BLOCK(clone), BLOCK(unshare),
	BLOCK(mode_1), BLOCK(mode_2), BLOCK(open_1), BLOCK(open_2), BLOCK(target), BLOCK(priority), BLOCK(ioprio),
};
enum block_id { B_ALLOW, B_NO_SUCH_CALL, B_NOTIFY, B_SOCKET, B_UNTRUSTED_SOCKET, B_PERSONALITY, B_PRCTL, B_IOCTL,
		B_CLONE, B_UNSHARE, B_MODE_1, B_MODE_2,
		B_OPEN_1, B_OPEN_2, B_TARGET, B_PRIORITY, B_IOPRIO, BLOCK_COUNT };
_Static_assert(KS_COUNT(blocks) == BLOCK_COUNT, "one block for each id, in this order");

static enum block_id block_of_arguments(const struct rule *rule, unsigned flags)
{
	switch (rule->verdict) {
	case SOCKET:
		return flags & KS_FILTER_UNTRUSTED ? B_UNTRUSTED_SOCKET : B_SOCKET;
	case PERSONALITY:
		return B_PERSONALITY;
	case PRCTL:
		return B_PRCTL;
	case IOCTL:
		return B_IOCTL;
	case MODE_1:
		return B_MODE_1;
	case MODE_2:
		return B_MODE_2;
	case OPEN_1:
		return B_OPEN_1;
	case OPEN_2:
		return B_OPEN_2;
	case TARGET:
		return B_TARGET;
	case PRIORITY:
		return B_PRIORITY;
	case IOPRIO:
		return B_IOPRIO;
	case ALLOW:
	case REFUSE:
	case SETUP:
	case REPORT:
	case CLONE:
	case UNSHARE:
		break;
	}
	return B_ALLOW;
}

static enum block_id block_of_escape(const struct rule *rule)
{
	switch (rule->verdict) {
	case SETUP:
		return B_NO_SUCH_CALL;
	case REPORT:
		return B_NOTIFY;
	case CLONE:
		return B_CLONE;
	case UNSHARE:
		return B_UNSHARE;
	case ALLOW:
	case REFUSE:
	case SOCKET:
	case PERSONALITY:
	case PRCTL:
	case IOCTL:
	case MODE_1:
	case MODE_2:
	case OPEN_1:
	case OPEN_2:
	case TARGET:
	case PRIORITY:
	case IOPRIO:
		break;
	}
	return B_ALLOW;
}

/* ---- the search: runs of numbers with one block each, halved until one is left ---- */

struct run {
	uint32_t first;
	enum block_id block;
};

struct program {
	struct sock_filter *code;
	unsigned short count;
	bool full;
	struct run runs[2 * KS_COUNT(rules) + 4];
	size_t run_count;
	struct {
		bool open;
		enum block_id block;
	} jumps[KS_FILTER_MAX][2]; /* if true, if false: to a block whose place is not known yet */
};

/* In ascending order; a number that was given again replaces what was said of it. */
static void add_run(struct program *p, uint32_t first, enum block_id block)
{
	if (p->run_count > 0 && p->runs[p->run_count - 1].first == first)
		p->run_count--;
	if (p->run_count > 0 && p->runs[p->run_count - 1].block == block)
		return;
	p->runs[p->run_count++] = (struct run){ first, block };
}

static int by_number(const void *a, const void *b)
{
	return ((const struct run *)a)->first < ((const struct run *)b)->first ? -1 : 1;
}

static enum block_id block_of(const struct rule *rule, enum ks_filter_kind kind, unsigned flags)
{
	if (kind == KS_FILTER_ARGUMENTS)
		return block_of_arguments(rule, flags);
	return kind == KS_FILTER_ZYGOTE && strcmp(rule->name, "setns") == 0 ? B_ALLOW : block_of_escape(rule);
}

static void make_runs(struct program *p, enum ks_filter_kind kind, uint32_t arch, unsigned flags)
{
	struct run calls[KS_COUNT(rules)];
	size_t count = 0;

	for (size_t i = 0; i < KS_COUNT(rules); i++)
		if (number_of(&rules[i], arch) >= 0)
			calls[count++] = (struct run){ (uint32_t)number_of(&rules[i], arch), block_of(&rules[i], kind, flags) };
	qsort(calls, count, sizeof(calls[0]), by_number);
	add_run(p, 0, B_ALLOW);
	for (size_t i = 0; i < count; i++) {
		add_run(p, calls[i].first, calls[i].block);
		add_run(p, calls[i].first + 1, B_ALLOW);
	}
}

static void emit(struct program *p, struct sock_filter instruction)
{
	if (p->count == KS_FILTER_MAX)
		p->full = true;
	else
		p->code[p->count++] = instruction;
}

static void emit_search(struct program *p, size_t from, size_t to)
{
	const size_t half = from + (to - from) / 2;
	const unsigned short at = p->count;

	emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, p->runs[half].first, 0, 0));
	if (p->full)
		return;
	p->jumps[at][1].open = half - from == 1;
	p->jumps[at][1].block = p->runs[from].block;
	if (half - from > 1)
		emit_search(p, from, half);
	p->jumps[at][0].open = to - half == 1;
	p->jumps[at][0].block = p->runs[half].block;
	if (to - half == 1)
		return;
	p->full |= p->count - at - 1 > UINT8_MAX;
	p->code[at].jt = (unsigned char)(p->count - at - 1);
	emit_search(p, half, to);
}

static void emit_block(struct program *p, enum block_id block, unsigned short search_end)
{
	const unsigned short place = p->count;
	bool used = false;

	for (unsigned short at = 0; at < search_end; at++)
		for (int i = 0; i < 2; i++) {
			if (!p->jumps[at][i].open || p->jumps[at][i].block != block)
				continue;
			used = true;
			p->full |= place - at - 1 > UINT8_MAX; /* classic BPF jumps are 8 bits wide */
			*(i == 0 ? &p->code[at].jt : &p->code[at].jf) = (unsigned char)(place - at - 1);
		}
	for (size_t i = 0; used && i < blocks[block].count; i++)
		emit(p, blocks[block].code[i]);
}

int ks_filter_compile(enum ks_filter_kind kind, uint32_t arch, unsigned flags, struct sock_filter code[KS_FILTER_MAX],
		      unsigned short *ret_count, struct ks_error *err)
{
	KS_AUTOFREE struct program *p = calloc(1, sizeof(*p));

	if (!p)
		return ks_fail(err, KS_E_OVERLOADED, "out of memory");
	p->code = code;
	make_runs(p, kind, arch, flags);
	/* no look at the architecture: the allowlist kills what is not ours, and the strictest answer counts */
	emit(p, (struct sock_filter)LOAD(nr));
	emit_search(p, 0, p->run_count);
	const unsigned short search_end = p->count;
	for (int block = 0; block < BLOCK_COUNT; block++)
		emit_block(p, (enum block_id)block, search_end);
	if (p->full)
		return ks_fail(err, KS_E_INTERNAL, "the list of system calls is too long for a filter");
	/* nobody traces: ENOSYS (seccomp(2)). Every other refusal would win over the notification of a filter that is loaded on top */
	for (unsigned short at = 0; kind == KS_FILTER_ZYGOTE && at < p->count; at++)
		if (code[at].code == (BPF_RET | BPF_K) && code[at].k == SECCOMP_RET_USER_NOTIF)
			code[at].k = SECCOMP_RET_TRACE;
	*ret_count = p->count;
	return 0;
}

static int copy_program(const struct sock_filter *code, unsigned short count, struct ks_filter *ret_filter, struct ks_error *err)
{
	struct sock_filter *copy = malloc(count * sizeof(code[0]));

	if (!copy)
		return ks_fail(err, KS_E_OVERLOADED, "out of memory");
	memcpy(copy, code, count * sizeof(code[0]));
	*ret_filter = (struct ks_filter){ copy, count };
	return 0;
}

int ks_filter_arguments(unsigned flags, struct ks_filter *ret_filter, struct ks_error *err)
{
	struct sock_filter code[KS_FILTER_MAX];
	unsigned short count = 0;

	if (ks_filter_compile(KS_FILTER_ARGUMENTS, NATIVE_ARCH, flags, code, &count, err) < 0)
		return -1;
	return copy_program(code, count, ret_filter, err);
}

static int compile_into(enum ks_filter_kind kind, struct sock_filter code[KS_FILTER_MAX], struct ks_filter *ret_filter,
			struct ks_error *err)
{
	ret_filter->code = code;
	return ks_filter_compile(kind, NATIVE_ARCH, 0, code, &ret_filter->count, err);
}

int ks_filter_escape(struct ks_filter *ret_filter, struct ks_error *err)
{
	static struct sock_filter code[KS_FILTER_MAX];

	return compile_into(KS_FILTER_ESCAPE, code, ret_filter, err);
}

int ks_filter_zygote(struct ks_filter *ret_filter, struct ks_error *err)
{
	static struct sock_filter code[KS_FILTER_MAX];

	return compile_into(KS_FILTER_ZYGOTE, code, ret_filter, err);
}

/* ---- the allowlist, by libseccomp ---- */

static int fill_allowlist(scmp_filter_ctx ctx, unsigned flags)
{
	/* 2: a binary tree instead of a list, a third of the time to load and a tenth to run; the default for the rest is to kill */
	int rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);

	rc = rc < 0 ? rc : seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	for (size_t i = 0; i < KS_COUNT(rules) && rc >= 0; i++) {
		int nr = number_of(&rules[i], NATIVE_ARCH);
		if (nr >= 0 && rules[i].verdict != REFUSE && !(rules[i].falls & flags))
			rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
	}
	return rc;
}

/* Making it takes 2 ms; the program is exported, and loaded as often as wanted. */
static int export_program(scmp_filter_ctx ctx, struct ks_filter *ret_filter, struct ks_error *err)
{
	KS_AUTOCLOSE int fd = memfd_create("filter", MFD_CLOEXEC);
	struct sock_filter code[KS_FILTER_MAX];
	ssize_t n;

	if (fd < 0 || seccomp_export_bpf(ctx, fd) < 0)
		return ks_fail(err, KS_E_HOST_UNSUPPORTED, "libseccomp cannot export the allowlist of system calls");
	n = pread(fd, code, sizeof(code), 0);
	if (n <= 0 || n == (ssize_t)sizeof(code) || (size_t)n % sizeof(code[0]) != 0)
		return ks_fail(err, KS_E_INTERNAL, "the allowlist of system calls has a wrong length");
	return copy_program(code, (unsigned short)((size_t)n / sizeof(code[0])), ret_filter, err);
}

int ks_filter_allowlist(unsigned flags, struct ks_filter *ret_filter, struct ks_error *err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int rc = ctx ? fill_allowlist(ctx, flags) : -ENOMEM;

	rc = rc < 0 ? ks_fail_errno(err, KS_E_HOST_UNSUPPORTED, -rc, "libseccomp cannot build the allowlist of system calls") :
		      export_program(ctx, ret_filter, err);
	seccomp_release(ctx);
	return rc;
}

/* ---- loading ---- */

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
