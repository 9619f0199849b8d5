/* print_syscalls.c: prints sidecar/box/seccomp_list.h as the page SYSCALLS.md or, with --json, for the tests. Needs
 * nothing but the header: cc -I sidecar -o print_syscalls tests/box/print_syscalls.c */
#include <stdio.h>
#include <string.h>

#include "box/filter.h"

static const struct rule {
	const char *name, *verdict, *reason;
	int x86_64, aarch64;
	unsigned falls;
} rules[] = {
#define KS_RULE(name, x86_64, aarch64, verdict, falls, reason) { #name, #verdict, reason, x86_64, aarch64, falls },
#include "box/seccomp_list.h"
#undef KS_RULE
};

#define COUNT (sizeof(rules) / sizeof(rules[0]))

static const struct section {
	const char *title, *verdicts, *text;
} sections[] = {
	{ "Allowed", " ALLOW ", "Where the fourth column names a variant, that variant refuses the call with `ENOSYS`." },
	{ "Allowed by arguments", " SOCKET PERSONALITY PRCTL IOCTL CLONE UNSHARE MODE_1 MODE_2 OPEN_1 OPEN_2 TARGET PRIORITY IOPRIO ",
	  "Only the halves of the arguments that the kernel looks at count. `clone` and `unshare` are reported (see below) when they "
	  "would make a namespace; the others answer with the errno that is named." },
	{ "Reported", " REPORT ",
	  "Refused, and the process that made the call is ended: by SIGSYS, or by SIGKILL where it blocks, ignores or catches that. The "
	  "call's answer has the fault `escape_blocked` with the first of them and the process, and `usage.syscallsRefused` counts "
	  "them. A filter that the code itself has set may answer first; then the call is refused as well, without a report." },
	{ "Refused: needed to make a box, not to live in one", " SETUP ", "`ENOSYS` in a box." },
	{ "Refused for a reason", " REFUSE ", "`ENOSYS`, as for every call that is not on this page." },
};

static void print_number(int nr)
{
	if (nr < 0)
		(void)printf(" - |");
	else
		(void)printf(" %d |", nr);
}

static void print_section(const struct section *section)
{
	char verdict[24];

	(void)printf("\n## %s\n\n%s\n\n| call | x86_64 | aarch64 | refused in | reason |\n|---|---|---|---|---|\n", section->title,
		     section->text);
	for (size_t i = 0; i < COUNT; i++) {
		(void)snprintf(verdict, sizeof(verdict), " %s ", rules[i].verdict);
		if (!strstr(section->verdicts, verdict))
			continue;
		(void)printf("| `%s` |", rules[i].name);
		print_number(rules[i].x86_64);
		print_number(rules[i].aarch64);
		(void)printf("%s%s%s | %s |\n", rules[i].falls & KS_FILTER_NO_HIDDEN_MEMORY ? " polled" : "",
			     rules[i].falls == (KS_FILTER_NO_HIDDEN_MEMORY | KS_FILTER_UNTRUSTED) ? "," : "",
			     rules[i].falls & KS_FILTER_UNTRUSTED ? " untrusted" : "", rules[i].reason);
	}
}

static void print_page(void)
{
	(void)printf(
		"# System calls in a box\n\n"
		"Printed by `tests/box/print_syscalls.c` from `seccomp_list.h`; a test compares it, and another makes every call in a "
		"box.\n\n"
		"What is not listed is refused with `ENOSYS`. **Killed** on the spot by SIGSYS, without a report: every call through "
		"another architecture's gate (on x86_64 the i386 one, `int 0x80`) and every x32 number (those with bit 30 set).\n\n"
		"Variants: *polled*: the host lets us set no memory cgroup, so memory that belongs to no process would escape the cap. "
		"*untrusted*: `securityProfile: \"untrusted\"`.\n");
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		print_section(&sections[i]);
}

/* No name and no reason has a quote or a backslash: the compiler has seen them as words and plain sentences. */
static void print_json(void)
{
	for (size_t i = 0; i < COUNT; i++)
		(void)printf("%s{\"name\":\"%s\",\"x86_64\":%d,\"aarch64\":%d,\"verdict\":\"%s\",\"falls\":[%s%s%s],\"reason\":\"%s\"}",
			     i == 0 ? "[" : ",\n", rules[i].name, rules[i].x86_64, rules[i].aarch64, rules[i].verdict,
			     rules[i].falls & KS_FILTER_NO_HIDDEN_MEMORY ? "\"polled\"" : "",
			     rules[i].falls == (KS_FILTER_NO_HIDDEN_MEMORY | KS_FILTER_UNTRUSTED) ? "," : "",
			     rules[i].falls & KS_FILTER_UNTRUSTED ? "\"untrusted\"" : "", rules[i].reason);
	(void)printf("]\n");
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--json") == 0)
		print_json();
	else
		print_page();
	return 0;
}
