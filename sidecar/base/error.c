#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int number;
	bool retryable;
} reasons[KS_REASON_MAX] = {
	[KS_E_NONE] = { "none", 0, false },
#define KS_REASON_ROW(symbol, wire, wire_name, again) [KS_E_##symbol] = { wire_name, wire, again },
	KS_REASONS(KS_REASON_ROW)
#undef KS_REASON_ROW
};

static enum ks_reason known(enum ks_reason reason)
{
	return (unsigned)reason < KS_REASON_MAX ? reason : KS_E_INTERNAL;
}

const char *ks_reason_name(enum ks_reason reason)
{
	return reasons[known(reason)].name;
}

int ks_reason_number(enum ks_reason reason)
{
	return reasons[known(reason)].number;
}

bool ks_reason_retryable(enum ks_reason reason)
{
	return reasons[known(reason)].retryable;
}

KS_PRINTF(3, 0) static void fill(struct ks_error *err, enum ks_reason reason, const char *fmt, va_list ap)
{
	memset(err, 0, sizeof(*err)); /* goes over sockets: no stale bytes */
	err->reason = reason;
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
}

int ks_fail(struct ks_error *err, enum ks_reason reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill(err, reason, fmt, ap);
	va_end(ap);
	return -1;
}

int ks_fail_errno(struct ks_error *err, enum ks_reason reason, int sys_errno, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill(err, reason, fmt, ap);
	va_end(ap);
	err->sys_errno = sys_errno;
	const char *why = strerrordesc_np(sys_errno);
	size_t at = strlen(err->text);
	(void)snprintf(err->text + at, sizeof(err->text) - at, ": %s", why ? why : "unknown error");
	return -1;
}

int ks_fail_at(struct ks_error *err, enum ks_reason reason, const char *pointer, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill(err, reason, fmt, ap);
	va_end(ap);
	return ks_error_at(err, pointer);
}

int ks_error_at(struct ks_error *err, const char *pointer)
{
	(void)snprintf(err->pointer, sizeof(err->pointer), "%s", pointer);
	return -1;
}

int ks_error_step(struct ks_error *err, const char *step)
{
	(void)snprintf(err->step, sizeof(err->step), "%s", step);
	return -1;
}

int ks_error_hint(struct ks_error *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
	va_end(ap);
	return -1;
}
