#include "serve.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fds.h"
#include "confine.h"

/* The whole frame, or the end of the process: a worker lives as long as its socket. */
static struct ks_frame receive(int sock, struct ks_buf *payload, int *fds, int *ret_fd_count)
{
	struct ks_frame frame;
	ssize_t n = ks_recv(sock, &frame, sizeof(frame), fds, ret_fd_count, MSG_WAITALL);

	if (n != (ssize_t)sizeof(frame))
		_exit(n == 0 ? 0 : 2);
	if (frame.len > KS_FRAME_MAX)
		ks_run_damaged();
	ks_buf_clear(payload);
	char *data = ks_buf_reserve(payload, frame.len + 1u);
	if (!data)
		_exit(3);
	while (payload->len < frame.len) {
		n = recv(sock, data + payload->len, frame.len - payload->len, MSG_WAITALL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(n == 0 ? 0 : 2);
		payload->len += (size_t)n;
	}
	return frame;
}

static void set_up(int sock, struct ks_roots *roots)
{
	KS_AUTOBUF struct ks_buf payload = { 0 };
	int fds[KS_MSG_FDS], nfds;

	if (receive(sock, &payload, fds, &nfds).kind != KS_JOB_SETUP || nfds > KS_ROOTS_MAX)
		ks_run_damaged();
	struct ks_unpack in = { payload.data, payload.len, false };
	struct ks_identity who = { 0 };
	who.parent = (pid_t)ks_unpack_int(&in);
	who.become = ks_unpack_int(&in) != 0;
	who.uid = (uid_t)ks_unpack_int(&in);
	who.gid = (gid_t)ks_unpack_int(&in);
	for (int i = 0; i < nfds; i++) {
		roots->fds[i] = fds[i];
		roots->writable[i] = ks_unpack_int(&in) != 0;
	}
	roots->count = (size_t)nfds;
	if (!ks_unpack_end(&in))
		ks_run_damaged();
	ks_confine(&who, roots);
}

void ks_serve(int sock)
{
	struct ks_roots roots;
	struct ks_buf payload = { 0 }, result = { 0 };
	struct ks_run run = { .sock = sock, .roots = &roots };
	struct ks_error err;

	set_up(sock, &roots);
	for (;;) {
		int fds[KS_MSG_FDS];
		struct ks_frame frame = receive(sock, &payload, fds, &run.fd_count);
		if (frame.kind >= KS_JOB_KINDS || !ks_job_table[frame.kind] || run.fd_count > KS_JOB_FDS)
			ks_run_damaged();
		memcpy(run.fds, fds, (size_t)run.fd_count * sizeof(fds[0]));
		struct ks_unpack in = { payload.data, payload.len, false };
		int rc = ks_job_table[frame.kind](&run, &in, &result, &err);
		if (rc == 0 && result.failed)
			rc = ks_fail(&err, KS_E_INTERNAL, "out of memory");
		if (rc == 0)
			ks_run_answer(&run, KS_ANSWER_DONE, result.data, result.len);
		else
			ks_run_answer(&run, KS_ANSWER_FAILED, &err, sizeof(err));
		ks_close_all(run.fds, run.fd_count);
		/* what a large file took is given back: a worker may sit idle for long */
		ks_buf_free(&payload);
		ks_buf_free(&result);
		ks_buf_free(&run.records);
	}
}
