#include "run.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "serve.h"

#define FLUSH ((size_t)64 << 10)
#define PROGRESS_US 100000

void ks_run_damaged(void)
{
	_exit(2); /* the sidecar sees that: it is not a job's failure but ours */
}

static void send_all(int sock, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(sock, data, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0); /* nobody listens any more */
		data += n;
		len -= (size_t)n;
	}
}

static void send_records(struct ks_run *run)
{
	if (run->records.failed)
		_exit(3);
	send_all(run->sock, run->records.data, run->records.len);
	ks_buf_clear(&run->records);
}

void ks_run_answer(struct ks_run *run, enum ks_answer kind, const void *payload, size_t len)
{
	struct ks_frame frame = { kind, (uint32_t)len };

	if (len > KS_FRAME_MAX)
		_exit(3);
	ks_buf_add(&run->records, &frame, sizeof(frame));
	if (len <= FLUSH)
		ks_buf_add(&run->records, payload, len);
	send_records(run);
	if (len > FLUSH)
		send_all(run->sock, payload, len);
}

/* The head is written when the length is known. */
struct ks_buf *ks_run_record(struct ks_run *run)
{
	struct ks_frame frame = { KS_ANSWER_RECORD, 0 };

	run->record_at = run->records.len;
	ks_buf_add(&run->records, &frame, sizeof(frame));
	return &run->records;
}

void ks_run_record_end(struct ks_run *run)
{
	size_t len = run->records.len - run->record_at - sizeof(struct ks_frame);
	struct ks_frame frame = { KS_ANSWER_RECORD, (uint32_t)len };

	if (run->records.failed || len > KS_FRAME_MAX)
		_exit(3);
	memcpy(run->records.data + run->record_at, &frame, sizeof(frame));
	if (run->records.len >= FLUSH)
		send_records(run);
}

void ks_run_progress(struct ks_run *run, int64_t done, int64_t total, bool last)
{
	int64_t now = ks_now_us();
	const int64_t payload[] = { done, total };

	if (!last && now - run->told_us < PROGRESS_US)
		return;
	run->told_us = now;
	ks_run_answer(run, KS_ANSWER_PROGRESS, payload, sizeof(payload));
}

int ks_run_root(const struct ks_run *run, int64_t number, bool to_write, struct ks_error *err)
{
	if (number < 0 || (size_t)number >= run->roots->count)
		ks_run_damaged();
	if (to_write && !run->roots->writable[number]) {
		(void)ks_fail(err, KS_E_READ_ONLY, "this is a read-only mount");
		return ks_error_hint(err, "mount it with mode rw if the session may change it");
	}
	return run->roots->fds[number];
}
