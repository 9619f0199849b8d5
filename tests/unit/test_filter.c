/* test_filter.c: the three programs of a box, run by an interpreter of classic BPF over every number and the edges of
 * every argument that a rule looks at, for both architectures and all variants; the list against libseccomp's
 * numbers; and the kernel's own checker. */
#include "box/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ERRNO(number) (SECCOMP_RET_ERRNO | (unsigned)(number))
#define ALLOWED SECCOMP_RET_ALLOW
#define NOTIFIED SECCOMP_RET_USER_NOTIF
#define KILLED SECCOMP_RET_KILL_PROCESS
#define UPPER (UINT64_C(0xdeadbeef) << 32)

enum { NATIVE_X86, NATIVE_ARM, ARCHS };
static const uint32_t archs[ARCHS] = { AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64 };
static const unsigned variants[] = { 0, KS_FILTER_NO_HIDDEN_MEMORY, KS_FILTER_UNTRUSTED,
				     KS_FILTER_NO_HIDDEN_MEMORY | KS_FILTER_UNTRUSTED };

static const struct rule {
	const char *name, *verdict, *reason;
	int nr[ARCHS];
	unsigned falls;
} rules[] = {
#define KS_RULE(name, x86_64, aarch64, verdict, falls, reason) { #name, #verdict, reason, { x86_64, aarch64 }, falls },
#include "box/seccomp_list.h"
#undef KS_RULE
};

struct program {
	struct sock_filter code[KS_FILTER_MAX];
	unsigned short count;
};

/* ---- the interpreter: what of classic BPF the kernel lets a seccomp filter use, and we do ---- */

static bool compare(const struct sock_filter *at, uint32_t value)
{
	switch (BPF_OP(at->code)) {
	case BPF_JEQ:
		return value == at->k;
	case BPF_JGE:
		return value >= at->k;
	case BPF_JGT:
		return value > at->k;
	case BPF_JSET:
		return (value & at->k) != 0;
	default:
		fail_msg("instruction %#x", at->code);
		return false;
	}
}

static uint32_t run(const struct program *program, const struct seccomp_data *data)
{
	uint32_t value = 0;

	for (unsigned at = 0; at < program->count; at++) {
		const struct sock_filter *in = &program->code[at];
		if (BPF_CLASS(in->code) == BPF_RET)
			return in->k;
		if (BPF_CLASS(in->code) == BPF_JMP && BPF_OP(in->code) == BPF_JA) {
			at += in->k;
		} else if (BPF_CLASS(in->code) == BPF_JMP) {
			at += compare(in, value) ? in->jt : in->jf;
		} else {
			assert_int_equal(in->code, BPF_LD | BPF_W | BPF_ABS);
			assert_true(in->k <= sizeof(*data) - sizeof(value) && in->k % sizeof(value) == 0);
			memcpy(&value, (const char *)data + in->k, sizeof(value));
		}
	}
	fail_msg("the program ran off its end");
	return 0;
}

static void compile(struct program *ret, enum ks_filter_kind kind, int arch, unsigned flags)
{
	struct ks_error err;

	memset(ret, 0, sizeof(*ret));
	assert_int_equal(ks_filter_compile(kind, archs[arch], flags, ret->code, &ret->count, &err), 0);
}

/* Of a box, the youngest first: of equal answers its counts. The allowlist is made by libseccomp, for the machine it runs on only. */
enum { ESCAPE, ZYGOTE, ALLOWLIST, ARGUMENTS, PROGRAMS }; /* ZYGOTE: only where a test puts it */
static struct program programs[PROGRAMS];

#if defined(__x86_64__)
#define NATIVE NATIVE_X86
#else
#define NATIVE NATIVE_ARM
#endif

static void compile_box(int arch, unsigned flags)
{
	struct ks_filter allowlist;
	struct ks_error err;

	compile(&programs[ARGUMENTS], KS_FILTER_ARGUMENTS, arch, flags);
	compile(&programs[ESCAPE], KS_FILTER_ESCAPE, arch, flags);
	programs[ZYGOTE].count = 0;
	programs[ALLOWLIST].count = 0;
	if (arch != NATIVE)
		return;
	assert_int_equal(ks_filter_allowlist(flags, &allowlist, &err), 0);
	assert_in_range(allowlist.count, 1, KS_FILTER_MAX - 1);
	memcpy(programs[ALLOWLIST].code, allowlist.code, allowlist.count * sizeof(allowlist.code[0]));
	programs[ALLOWLIST].count = allowlist.count;
	free(allowlist.code);
}

/* The kernel's order, strictest first (seccomp(2)): KILL_PROCESS, ERRNO, USER_NOTIF, ALLOW. The constants sort so as signed. */
static uint32_t strictest(const struct seccomp_data *data, int first, int last)
{
	uint32_t answer = SECCOMP_RET_ALLOW;

	for (int i = first; i <= last; i++) {
		uint32_t one = programs[i].count > 0 ? run(&programs[i], data) : SECCOMP_RET_ALLOW;
		if ((int32_t)(one & SECCOMP_RET_ACTION_FULL) < (int32_t)(answer & SECCOMP_RET_ACTION_FULL))
			answer = one;
	}
	return answer;
}

static uint32_t in_box(int arch, int nr, const uint64_t args[6])
{
	struct seccomp_data data = { .nr = nr, .arch = archs[arch] };

	if (args)
		memcpy(data.args, args, sizeof(data.args));
	return strictest(&data, 0, PROGRAMS - 1);
}

static uint32_t call(int arch, const char *name, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t args[6] = { a, b, c, 0, 0, 0 };

	for (size_t i = 0; i < KS_COUNT(rules); i++)
		if (strcmp(rules[i].name, name) == 0)
			return in_box(arch, rules[i].nr[arch], args);
	fail_msg("no rule for %s", name);
	return 0;
}

/* ---- the list ---- */

static void test_list_is_sound(void **state)
{
	static const char *const verdicts[] = { "ALLOW", "REFUSE", "SETUP", "REPORT", "SOCKET", "PERSONALITY", "PRCTL", "IOCTL", "CLONE",
						"UNSHARE", "MODE_1", "MODE_2", "OPEN_1", "OPEN_2", "TARGET", "PRIORITY", "IOPRIO" };

	(void)state;
	for (size_t i = 0; i < KS_COUNT(rules); i++) {
		bool known = false;
		for (size_t v = 0; v < KS_COUNT(verdicts); v++)
			known |= strcmp(rules[i].verdict, verdicts[v]) == 0;
		assert_true(known);
		assert_true(strlen(rules[i].reason) >= 10 || strcmp(rules[i].name, "socketpair") == 0 ||
			    strcmp(rules[i].name, "unshare") == 0);
		assert_true(rules[i].nr[0] >= 0 || rules[i].nr[1] >= 0);
		for (size_t k = 0; k < i; k++) {
			assert_string_not_equal(rules[i].name, rules[k].name);
			for (int arch = 0; arch < ARCHS; arch++)
				assert_true(rules[i].nr[arch] < 0 || rules[i].nr[arch] != rules[k].nr[arch]);
		}
	}
}

/* Numbers by an independent source. It knows only what is older than itself; what it knows must be the same. */
static void test_numbers_are_those_of_libseccomp(void **state)
{
	static const uint32_t tokens[ARCHS] = { SCMP_ARCH_X86_64, SCMP_ARCH_AARCH64 };
	unsigned known = 0;

	(void)state;
	for (size_t i = 0; i < KS_COUNT(rules); i++)
		for (int arch = 0; arch < ARCHS; arch++) {
			int nr = seccomp_syscall_resolve_name_arch(tokens[arch], rules[i].name);
			if (nr == __NR_SCMP_ERROR)
				continue; /* younger than the library */
			known++;
			if (nr < 0)
				assert_int_equal(rules[i].nr[arch], -1); /* a pseudo number: not of this architecture */
			else
				assert_int_equal(rules[i].nr[arch], nr);
		}
	assert_true(known > 600);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(ks_filter_call_name(SYS_mount), "mount");
	assert_string_equal(ks_filter_call_name(SYS_clone), "clone");
	assert_string_equal(ks_filter_call_name(467), "open_tree_attr");
	assert_null(ks_filter_call_name(-1)); /* calls that this architecture has not */
	assert_null(ks_filter_call_name(9999));
}

/* ---- every number ---- */

static uint32_t expected(int arch, uint32_t nr, unsigned flags)
{
	const char *verdict = "";

	if (arch == NATIVE_X86 && nr >= 0x40000000 && nr != 0xffffffff)
		return KILLED;
	for (size_t i = 0; i < KS_COUNT(rules); i++)
		if (rules[i].nr[arch] >= 0 && (uint32_t)rules[i].nr[arch] == nr) {
			verdict = rules[i].falls & flags ? "" : rules[i].verdict;
			break;
		}
	if (strcmp(verdict, "REPORT") == 0)
		return NOTIFIED;
	if (strcmp(verdict, "SOCKET") == 0)
		return ERRNO(EAFNOSUPPORT); /* all arguments are 0: AF_UNSPEC */
	if (strcmp(verdict, "") == 0 || strcmp(verdict, "REFUSE") == 0 || strcmp(verdict, "SETUP") == 0)
		return ERRNO(ENOSYS);
	return ALLOWED;
}

static void test_every_number(void **state)
{
	static const uint32_t edges[] = { 0x3fffffff, 0x40000000, 0x40000001, 0x400001ff, 0x400003e8, 0x7fffffff, 0x80000000,
					  0xc0000000, 0xfffffffe, 0xffffffff };

	(void)state;
	for (int arch = NATIVE; arch == NATIVE; arch += ARCHS)
		for (size_t v = 0; v < KS_COUNT(variants); v++) {
			compile_box(arch, variants[v]);
			for (uint32_t nr = 0; nr < 2000; nr++)
				assert_int_equal(in_box(arch, (int)nr, NULL), expected(arch, nr, variants[v]));
			for (uint32_t nr = 0x40000000; nr < 0x40000400; nr++)
				assert_int_equal(in_box(arch, (int)nr, NULL), expected(arch, nr, variants[v]));
			for (size_t i = 0; i < KS_COUNT(edges); i++)
				assert_int_equal(in_box(arch, (int)edges[i], NULL), expected(arch, edges[i], variants[v]));
			for (unsigned bit = 11; bit < 32; bit++) /* a known call below any upper bit is another number */
				for (uint32_t nr = 0; nr < 500; nr++) {
					uint32_t high = nr | UINT32_C(1) << bit;
					assert_int_equal(in_box(arch, (int)high, NULL), expected(arch, high, variants[v]));
				}
		}
}

static void test_another_architecture_is_killed(void **state)
{
	static const uint32_t others[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, 0, 0xffffffff };

	(void)state;
	compile_box(NATIVE, 0);
	for (size_t i = 0; i < KS_COUNT(others); i++)
		for (int nr = 0; nr < 500; nr++) {
			struct seccomp_data data = { .nr = nr, .arch = others[i] };
			if (others[i] != archs[NATIVE])
				assert_int_equal(run(&programs[ALLOWLIST], &data), KILLED);
		}
}

/* The template and init run without the box's own filter: nothing that they need may be missing there. */
static void test_set_up_calls_are_free_before_the_second_filter(void **state)
{
	(void)state;
	for (int arch = 0; arch < ARCHS; arch++)
		for (size_t v = 0; v < KS_COUNT(variants); v++) {
			compile_box(arch, variants[v]);
			for (size_t i = 0; i < KS_COUNT(rules); i++) {
				const char *verdict = rules[i].verdict;
				if (rules[i].nr[arch] < 0 || (strcmp(verdict, "SETUP") && strcmp(verdict, "REPORT") &&
							      strcmp(verdict, "CLONE") && strcmp(verdict, "UNSHARE")))
					continue;
				struct seccomp_data data = { .nr = rules[i].nr[arch], .arch = archs[arch],
							     .args = { CLONE_NEWUSER, CLONE_NEWUSER } };
				assert_int_equal(strictest(&data, ARGUMENTS, ARGUMENTS), ALLOWED);
				assert_int_equal(strictest(&data, ALLOWLIST, ALLOWLIST), ALLOWED);
			}
		}
}

/* ---- arguments, each with rubbish in the half that the kernel does not look at ---- */

static void both_halves(int arch, const char *name, uint32_t a, uint32_t b, uint32_t c, uint32_t verdict)
{
	assert_int_equal(call(arch, name, a, b, c), verdict);
	assert_int_equal(call(arch, name, UPPER | a, UPPER | b, UPPER | c), verdict);
}

static void test_socket_families(void **state)
{
	static const char *const names[] = { "socket", "socketpair" };

	(void)state;
	for (int arch = 0; arch < ARCHS; arch++)
		for (size_t n = 0; n < KS_COUNT(names); n++) {
			compile_box(arch, 0);
			for (uint32_t family = 0; family < 300; family++) {
				bool allowed = family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
				both_halves(arch, names[n], family, SOCK_STREAM, 0, allowed ? ALLOWED : ERRNO(EAFNOSUPPORT));
			}
			both_halves(arch, names[n], 0x80000001, SOCK_STREAM, 0, ERRNO(EAFNOSUPPORT));
			both_halves(arch, names[n], 0xffffffff, SOCK_STREAM, 0, ERRNO(EAFNOSUPPORT));
			for (uint32_t protocol = 1; protocol < 40; protocol++) {
				both_halves(arch, names[n], AF_NETLINK, SOCK_RAW, protocol, ERRNO(EPROTONOSUPPORT));
				both_halves(arch, names[n], AF_INET, SOCK_STREAM, protocol, ALLOWED);
			}
			compile_box(arch, KS_FILTER_UNTRUSTED);
			both_halves(arch, names[n], AF_UNIX, SOCK_STREAM, 0, ALLOWED);
			both_halves(arch, names[n], AF_NETLINK, SOCK_RAW, 0, ERRNO(EAFNOSUPPORT));
			for (uint32_t protocol = 0; protocol < 300; protocol++) {
				bool allowed = protocol == 0 || protocol == 6 || protocol == 17;
				both_halves(arch, names[n], AF_INET, SOCK_STREAM, protocol,
					    allowed ? ALLOWED : ERRNO(EPROTONOSUPPORT));
				both_halves(arch, names[n], AF_INET6, SOCK_STREAM, protocol,
					    allowed ? ALLOWED : ERRNO(EPROTONOSUPPORT));
			}
		}
}

static void test_personalities(void **state)
{
	(void)state;
	for (int arch = 0; arch < ARCHS; arch++) {
		compile_box(arch, 0);
		for (unsigned bit = 0; bit < 32; bit++) {
			uint32_t value = UINT32_C(1) << bit;
			both_halves(arch, "personality", value, 0, 0, value == 8 || value == 0x20000 ? ALLOWED : ERRNO(EPERM));
			both_halves(arch, "personality", value | 8, 0, 0,
				    value == 8 || value == 0x20000 ? ALLOWED : ERRNO(EPERM));
		}
		both_halves(arch, "personality", 0, 0, 0, ALLOWED);
		both_halves(arch, "personality", 0xffffffff, 0, 0, ALLOWED);
		both_halves(arch, "personality", 0xfffffffe, 0, 0, ERRNO(EPERM));
		both_halves(arch, "personality", 0x0040000, 0, 0, ERRNO(EPERM)); /* ADDR_NO_RANDOMIZE */
		both_halves(arch, "personality", 0x0400000, 0, 0, ERRNO(EPERM)); /* READ_IMPLIES_EXEC */
		compile_box(arch, KS_FILTER_UNTRUSTED);
		if (arch == NATIVE) /* the call falls as a whole */
			both_halves(arch, "personality", 0, 0, 0, ERRNO(ENOSYS));
	}
}

static void test_prctl(void **state)
{
	(void)state;
	for (int arch = 0; arch < ARCHS; arch++) {
		compile_box(arch, 0);
		for (uint32_t option = 0; option < 200; option++)
			both_halves(arch, "prctl", option, 0, 0, option == PR_SET_MM ? ERRNO(EPERM) : ALLOWED);
		both_halves(arch, "prctl", PR_SET_MM, 14, 0, ERRNO(EPERM)); /* PR_SET_MM_MAP asks for no capability */
		for (uint32_t how = 0; how < 64; how++) {
			both_halves(arch, "prctl", PR_SET_SPECULATION_CTRL, 0, how, how == PR_SPEC_ENABLE ? ERRNO(EPERM) : ALLOWED);
			both_halves(arch, "prctl", PR_SET_SPECULATION_CTRL, how, 0, ALLOWED);
		}
		both_halves(arch, "prctl", PR_GET_SPECULATION_CTRL, 0, PR_SPEC_ENABLE, ALLOWED);
		both_halves(arch, "prctl", 0x59616d61, 1, 0, ALLOWED); /* PR_SET_PTRACER: of no use without ptrace */
	}
}

static void test_ioctl(void **state)
{
	(void)state;
	for (int arch = 0; arch < ARCHS; arch++) {
		compile_box(arch, 0);
		both_halves(arch, "ioctl", 0, TIOCSTI, 0, ERRNO(EPERM));
		both_halves(arch, "ioctl", 0, TIOCLINUX, 0, ERRNO(EPERM));
		both_halves(arch, "ioctl", 0, TIOCSTI - 1, 0, ALLOWED);
		both_halves(arch, "ioctl", 0, TIOCSTI + 1, 0, ALLOWED);
		both_halves(arch, "ioctl", 0, TIOCLINUX - 1, 0, ALLOWED);
		both_halves(arch, "ioctl", 0, TIOCLINUX + 1, 0, ALLOWED);
		both_halves(arch, "ioctl", TIOCSTI, FIONREAD, TIOCSTI, ALLOWED); /* only the request counts */
	}
}

static void test_clone_and_unshare(void **state)
{
	static const uint32_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
					   CLONE_NEWNET;
	static const uint32_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
				       CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

	(void)state;
	for (int arch = 0; arch < ARCHS; arch++) {
		compile_box(arch, 0);
		for (unsigned bit = 0; bit < 32; bit++) {
			uint32_t flag = UINT32_C(1) << bit;
			both_halves(arch, "clone", flag, 0, 0, flag & namespaces ? NOTIFIED : ALLOWED);
			both_halves(arch, "clone", thread | flag, 0, 0, flag & namespaces ? NOTIFIED : ALLOWED);
			both_halves(arch, "unshare", flag, 0, 0, flag & (namespaces | CLONE_NEWTIME) ? NOTIFIED : ALLOWED);
		}
		both_halves(arch, "clone", CLONE_VM | CLONE_VFORK | 17, 0, 0, ALLOWED);
		both_halves(arch, "clone", 0, namespaces, namespaces, ALLOWED); /* only the flags count */
		both_halves(arch, "clone3", 0, 0, 0, ERRNO(ENOSYS));
		both_halves(arch, "unshare", 0, 0, 0, ALLOWED);
	}
}

/* It may do what a box may, and enter namespaces; what else a box refuses is no call for it. What it forks is refused, and reported, just
 * as everywhere: the filter of the box on top decides. */
static void test_zygote(void **state)
{
	static const uint64_t entering[6] = { 3, CLONE_NEWPID }, making[6] = { CLONE_NEWUSER };

	(void)state;
	for (int arch = 0; arch < ARCHS; arch++) {
		compile_box(arch, 0);
		compile(&programs[ZYGOTE], KS_FILTER_ZYGOTE, arch, 0);
		for (size_t i = 0; i < KS_COUNT(rules); i++) {
			const int nr = rules[i].nr[arch];
			const bool maker = strcmp(rules[i].name, "clone") == 0 || strcmp(rules[i].name, "unshare") == 0;
			const struct seccomp_data data = { .nr = nr, .arch = archs[arch] };
			if (nr < 0)
				continue;
			programs[ESCAPE].count = 0;
			const uint32_t alone = in_box(arch, nr, maker ? making : entering);
			const uint32_t own = run(&programs[ZYGOTE], &data);
			compile(&programs[ESCAPE], KS_FILTER_ESCAPE, arch, 0);
			const uint32_t forked = in_box(arch, nr, maker ? making : entering);
			programs[ZYGOTE].count = 0;
			assert_int_equal(forked, in_box(arch, nr, maker ? making : entering));
			compile(&programs[ZYGOTE], KS_FILTER_ZYGOTE, arch, 0);
			if (forked == NOTIFIED)
				assert_int_equal(alone, strcmp(rules[i].name, "setns") == 0 ? ALLOWED : SECCOMP_RET_TRACE);
			else
				assert_int_equal(alone, forked);
			assert_true(own != SECCOMP_RET_USER_NOTIF); /* one listener in a chain, and that is the box's */
		}
	}
	programs[ZYGOTE].count = 0;
}

/* Set-user-ID and set-group-ID bits would be real on the host's side of a writable directory. */
static void test_modes(void **state)
{
	static const struct {
		const char *name;
		int mode;  /* which argument */
		int flags; /* of open: which argument; 0 none */
	} calls[] = { { "chmod", 1, 0 },    { "fchmod", 1, 0 }, { "fchmodat", 2, 0 }, { "fchmodat2", 2, 0 }, { "creat", 1, 0 },
		      { "mknod", 1, 0 },    { "mknodat", 2, 0 }, { "open", 2, 1 },     { "openat", 3, 2 } };

	(void)state;
	for (int arch = 0; arch < ARCHS; arch++) {
		compile_box(arch, 0);
		for (size_t c = 0; c < KS_COUNT(calls); c++)
			for (unsigned mode = 0; mode < 0200000; mode += 0100) {
				const struct rule *rule = rules;
				while (strcmp(rule->name, calls[c].name) != 0)
					rule++;
				if (rule->nr[arch] < 0)
					continue;
				uint64_t args[6] = { 0 };
				args[calls[c].mode] = UPPER | mode;
				if (calls[c].flags) {
					assert_int_equal(in_box(arch, rule->nr[arch], args), ALLOWED); /* nothing is made */
					args[calls[c].flags] = UPPER | (mode & 0200 ? O_CREAT : O_TMPFILE);
				}
				assert_int_equal(in_box(arch, rule->nr[arch], args), mode & 06000 ? ERRNO(EPERM) : ALLOWED);
			}
	}
	compile_box(NATIVE, 0);
	both_halves(NATIVE, "openat2", 0, 0, 0, ERRNO(ENOSYS));
	both_halves(NATIVE, "mkdir", 0, 06777, 0, ALLOWED); /* the kernel takes these bits away: mkdir(2) */
}

/* Process 1 has the code's id and holds its limits. */
static void test_process_1_is_out_of_reach(void **state)
{
	static const char *const names[] = { "prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler" };

	(void)state;
	for (int arch = 0; arch < ARCHS; arch++) {
		compile_box(arch, 0);
		for (size_t i = 0; i < KS_COUNT(names); i++) {
			both_halves(arch, names[i], 1, 0, 0, ERRNO(EPERM));
			for (uint32_t pid = 0; pid < 70000; pid = pid ? pid * 3 : 2)
				both_halves(arch, names[i], pid, 1, 1, ALLOWED);
		}
		both_halves(arch, "setpriority", 0, 1, 0, ERRNO(EPERM));
		both_halves(arch, "setpriority", 0, 0, 1, ALLOWED);
		both_halves(arch, "setpriority", 0, 2, 1, ALLOWED);
		both_halves(arch, "setpriority", 1, 1, 0, ALLOWED); /* a group: process 1 is in none of the box's */
		both_halves(arch, "setpriority", 2, 0, 0, ERRNO(EPERM));
		both_halves(arch, "setpriority", 2, 1000, 0, ERRNO(EPERM));
		both_halves(arch, "ioprio_set", 1, 1, 0, ERRNO(EPERM));
		both_halves(arch, "ioprio_set", 1, 0, 0, ALLOWED);
		both_halves(arch, "ioprio_set", 2, 1, 0, ALLOWED);
		both_halves(arch, "ioprio_set", 3, 0, 0, ERRNO(EPERM));
	}
}

/* ---- the kernel ---- */

/* valgrind knows no seccomp, and answers for a kernel that has none. */
static void need_seccomp(void)
{
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &(uint32_t){ SECCOMP_RET_USER_NOTIF }) != 0)
		skip();
}

static int in_child(int (*body)(void))
{
	need_seccomp();
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int load_all_variants(void)
{
	struct ks_error err;
	struct ks_filter filter, made[KS_COUNT(variants)][2];
	int listener = -1;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 1;
	for (size_t v = 0; v < KS_COUNT(variants); v++) /* all of them first: the loaded ones refuse what making the next needs */
		if (ks_filter_allowlist(variants[v], &made[v][0], &err) < 0 || ks_filter_arguments(variants[v], &made[v][1], &err) < 0)
			return 2;
	for (size_t v = 0; v < KS_COUNT(variants); v++)
		if (ks_filter_load(&made[v][0]) != 0 || ks_filter_load(&made[v][1]) != 0)
			return 3;
	if (ks_filter_escape(&filter, &err) < 0)
		return 3;
	listener = ks_filter_load_listener(&filter);
	if (listener < 0)
		return 4;
	if (ks_filter_load_listener(&filter) != -EBUSY) /* a chain may hold one listener: code cannot add its own */
		return 5;
	return syscall(SYS_clone3, NULL, 0) == -1 && errno == ENOSYS && syscall(9999) == -1 && errno == ENOSYS ? 0 : 6;
}

static void test_the_kernel_takes_them(void **state)
{
	(void)state;
	assert_int_equal(in_child(load_all_variants), 0);
}

static int refused_flag(void)
{
	struct ks_filter filter = { NULL, 0 };

	return ks_filter_load(&filter) == -EINVAL ? 0 : 1;
}

static void test_a_bad_program_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(in_child(refused_flag), 0);
}

/* Loading the box's own costs by its length, in every box that is made. */
static void test_they_stay_short(void **state)
{
	(void)state;
	for (int arch = 0; arch < ARCHS; arch++)
		for (size_t v = 0; v < KS_COUNT(variants); v++) {
			compile_box(arch, variants[v]);
			print_message("%s, variant %u: allowlist %u, arguments %u, box %u instructions\n",
				      arch == NATIVE_X86 ? "x86_64" : "aarch64", variants[v], programs[ALLOWLIST].count,
				      programs[ARGUMENTS].count, programs[ESCAPE].count);
			assert_in_range(programs[ALLOWLIST].count, arch == NATIVE ? 50 : 0, 900);
			assert_in_range(programs[ARGUMENTS].count, 20, 250);
			assert_in_range(programs[ESCAPE].count, 20, 74);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list_is_sound),
		cmocka_unit_test(test_numbers_are_those_of_libseccomp),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_every_number),
		cmocka_unit_test(test_another_architecture_is_killed),
		cmocka_unit_test(test_set_up_calls_are_free_before_the_second_filter),
		cmocka_unit_test(test_socket_families),
		cmocka_unit_test(test_personalities),
		cmocka_unit_test(test_prctl),
		cmocka_unit_test(test_ioctl),
		cmocka_unit_test(test_clone_and_unshare),
		cmocka_unit_test(test_zygote),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_process_1_is_out_of_reach),
		cmocka_unit_test(test_the_kernel_takes_them),
		cmocka_unit_test(test_a_bad_program_is_an_error),
		cmocka_unit_test(test_they_stay_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
