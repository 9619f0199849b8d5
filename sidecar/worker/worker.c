#include "worker.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/fds.h"
#include "base/log.h"
#include "base/pidfd.h"

#define READ_TURN ((size_t)1 << 20) /* what one turn of the loop takes from a worker */
#define READ_PIECE ((size_t)128 << 10)
#define KEEP ((size_t)512 << 10) /* of a buffer that is empty */

struct ks_worker {
	uv_loop_t *loop;
	pid_t pid;
	int sock, pidfd;
	uv_poll_t sock_poll, pid_poll;
	int handles;
	bool freed, lost;
	struct ks_list jobs;   /* the first one is under way when `busy` */
	size_t count;
	bool busy;
	struct ks_buf out, in; /* the rest of the frame that is being sent; what was received and not taken yet */
	size_t out_done;
	void (*ended)(void *arg, struct ks_list *unsent);
	void *arg;
};

static void on_socket(uv_poll_t *poll, int status, int events);

void ks_job_drop(struct ks_job *job)
{
	ks_buf_free(&job->request);
	ks_close_all(job->fds, job->fd_count);
	job->fd_count = 0;
}

static struct ks_job *first(struct ks_worker *worker)
{
	return KS_ENTRY(worker->jobs.next, struct ks_job, node);
}

static struct ks_job *take_first(struct ks_worker *worker)
{
	struct ks_job *job = first(worker);

	ks_list_remove(&job->node);
	worker->count--;
	worker->busy = false;
	return job;
}

/* ---- the end ---- */

static void on_closed(uv_handle_t *handle)
{
	struct ks_worker *worker = handle->data;

	if (--worker->handles > 0)
		return;
	ks_close(&worker->sock);
	ks_close(&worker->pidfd);
	ks_buf_free(&worker->in);
	ks_buf_free(&worker->out);
	free(worker);
}

static void close_socket(struct ks_worker *worker)
{
	if (!uv_is_closing((uv_handle_t *)&worker->sock_poll))
		uv_close((uv_handle_t *)&worker->sock_poll, on_closed);
}

/* It is dead when its pidfd becomes readable (pidfd_open(2)), whatever it had still to say. */
static void on_dead(uv_poll_t *poll, int status, int events)
{
	struct ks_worker *worker = poll->data;
	struct ks_list unsent;
	struct ks_error err;
	int wait_status = 0;

	(void)status;
	(void)events;
	(void)waitpid(worker->pid, &wait_status, 0);
	uv_close((uv_handle_t *)&worker->pid_poll, on_closed);
	if (worker->freed)
		return;
	worker->freed = true;
	close_socket(worker);
	ks_log(KS_LOG_WARN, "worker_ended", "kern-worker ended by itself (wait status %d)", wait_status);
	struct ks_job *current = worker->busy ? take_first(worker) : NULL; /* last: `ended` is for somebody who waits for it */
	ks_list_init(&unsent);
	while (!ks_list_empty(&worker->jobs)) {
		struct ks_job *job = take_first(worker);
		ks_list_append(&unsent, &job->node);
	}
	worker->ended(worker->arg, &unsent);
	if (current) {
		(void)ks_fail(&err, KS_E_INTERNAL, "the worker process ended in the middle of this (wait status %d)", wait_status);
		current->done(current, NULL, &err);
	}
}

void ks_worker_free(struct ks_worker *worker)
{
	if (!worker || worker->freed)
		return;
	worker->freed = true;
	(void)ks_pidfd_kill(worker->pidfd, SIGKILL);
	while (!ks_list_empty(&worker->jobs))
		(void)take_first(worker);
	close_socket(worker);
}

/* The rest happens in on_dead. */
static void lose(struct ks_worker *worker, const char *why)
{
	if (worker->lost)
		return;
	worker->lost = true;
	ks_log(KS_LOG_WARN, "worker_lost", "kern-worker: %s", why);
	(void)uv_poll_stop(&worker->sock_poll);
	(void)ks_pidfd_kill(worker->pidfd, SIGKILL);
}

/* ---- sending ---- */

static void send_more(struct ks_worker *worker)
{
	while (worker->out_done < worker->out.len) {
		ssize_t n = send(worker->sock, worker->out.data + worker->out_done, worker->out.len - worker->out_done,
				 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN && errno != EPIPE && errno != ECONNRESET)
			lose(worker, strerrordesc_np(errno));
		if (n < 0)
			break;
		worker->out_done += (size_t)n;
	}
	if (worker->lost)
		return;
	const bool more = worker->out_done < worker->out.len;
	if (!more)
		ks_buf_free(&worker->out);
	(void)uv_poll_start(&worker->sock_poll, UV_READABLE | (more ? UV_WRITABLE : 0), on_socket);
}

/* The head carries the descriptors. It always fits: what was sent before has been read, else its answer would not have come. */
static void send_frame(struct ks_worker *worker, uint32_t kind, struct ks_buf *payload, const int *fds, int fd_count)
{
	struct ks_frame frame = { kind, (uint32_t)payload->len };

	if (payload->failed || payload->len > KS_FRAME_MAX) {
		lose(worker, "a job does not fit");
		return;
	}
	int rc = ks_send(worker->sock, &frame, sizeof(frame), fds, fd_count, MSG_DONTWAIT);
	if (rc < 0) { /* its end is on the way */
		(void)ks_pidfd_kill(worker->pidfd, SIGKILL);
		return;
	}
	worker->out = *payload;
	*payload = (struct ks_buf){ 0 };
	worker->out_done = 0;
	send_more(worker);
}

static void send_next(struct ks_worker *worker)
{
	if (worker->busy || worker->freed || worker->lost || worker->out.len > 0 || ks_list_empty(&worker->jobs))
		return;
	struct ks_job *job = first(worker);
	worker->busy = true;
	send_frame(worker, job->kind, &job->request, job->fds, job->fd_count);
	ks_job_drop(job);
}

void ks_worker_push(struct ks_worker *worker, struct ks_job *job)
{
	ks_list_append(&worker->jobs, &job->node);
	worker->count++;
	send_next(worker);
}

bool ks_worker_take_back(struct ks_worker *worker, struct ks_job *job)
{
	for (struct ks_list *n = worker->jobs.next; n != &worker->jobs; n = n->next)
		if (n == &job->node && !(worker->busy && job == first(worker))) {
			ks_list_remove(&job->node);
			worker->count--;
			return true;
		}
	return false;
}

size_t ks_worker_pending(const struct ks_worker *worker)
{
	return worker->count;
}

/* ---- receiving ---- */

static void receive_error(const struct ks_unpack *payload, struct ks_error *err)
{
	if (payload->left != sizeof(*err)) {
		(void)ks_fail(err, KS_E_INTERNAL, "the worker's answer is damaged");
		return;
	}
	memcpy(err, payload->at, sizeof(*err));
	err->pointer[sizeof(err->pointer) - 1] = err->step[sizeof(err->step) - 1] = '\0';
	err->text[sizeof(err->text) - 1] = err->hint[sizeof(err->hint) - 1] = '\0';
	if ((unsigned)err->reason >= KS_REASON_MAX || err->reason == KS_E_NONE)
		err->reason = KS_E_INTERNAL;
}

static void take_frame(struct ks_worker *worker, uint32_t kind, struct ks_unpack payload)
{
	struct ks_job *job = worker->busy ? first(worker) : NULL;
	struct ks_error err;

	if (!job) {
		lose(worker, "it answered without being asked");
	} else if (kind == KS_ANSWER_RECORD && job->record) {
		job->record(job, &payload);
		if (!ks_unpack_end(&payload))
			lose(worker, "a record is damaged");
	} else if (kind == KS_ANSWER_PROGRESS) {
		int64_t done = ks_unpack_int(&payload), total = ks_unpack_int(&payload);
		if (!ks_unpack_end(&payload))
			lose(worker, "a message of progress is damaged");
		else if (job->progress)
			job->progress(job, done, total);
	} else if (kind == KS_ANSWER_DONE) {
		take_first(worker)->done(job, &payload, NULL);
	} else if (kind == KS_ANSWER_FAILED) {
		receive_error(&payload, &err);
		take_first(worker)->done(job, NULL, &err);
	} else {
		lose(worker, "it sent a frame of an unknown kind");
	}
}

/* A callback may free the worker: it lives until its handles are closed. */
static void take_frames(struct ks_worker *worker)
{
	struct ks_frame frame;
	size_t at = 0;

	while (!worker->freed && !worker->lost && worker->in.len - at >= sizeof(frame)) {
		memcpy(&frame, worker->in.data + at, sizeof(frame));
		if (frame.len > KS_FRAME_MAX) {
			lose(worker, "it sent a frame that is too long");
			return;
		}
		if (worker->in.len - at - sizeof(frame) < frame.len)
			break;
		take_frame(worker, frame.kind, (struct ks_unpack){ worker->in.data + at + sizeof(frame), frame.len, false });
		at += sizeof(frame) + frame.len;
	}
	if (worker->freed || worker->lost)
		return;
	if (at == worker->in.len && worker->in.cap > KEEP)
		ks_buf_free(&worker->in);
	else
		ks_buf_drop(&worker->in, at);
}

static void receive(struct ks_worker *worker)
{
	for (size_t turn = 0; turn < READ_TURN;) {
		void *room = ks_buf_reserve(&worker->in, READ_PIECE);
		if (!room) {
			lose(worker, "out of memory");
			return;
		}
		ssize_t n = recv(worker->sock, room, READ_PIECE, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			lose(worker, "it closed its end");
		if (n <= 0)
			break;
		worker->in.len += (size_t)n;
		turn += (size_t)n;
	}
	take_frames(worker);
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
	struct ks_worker *worker = poll->data;

	if (status < 0) {
		lose(worker, uv_strerror(status));
		return;
	}
	if (events & UV_READABLE)
		receive(worker);
	if (!worker->freed && !worker->lost && (events & UV_WRITABLE))
		send_more(worker);
	send_next(worker);
}

/* ---- the beginning ---- */

/* Ours are all CLOEXEC; SIGPIPE is ignored here and must not be there. */
static int spawn(const char *program, int sock, pid_t *ret)
{
	static char name[] = "kern-worker", no_openat2[] = "KERN_TEST_NO_OPENAT2=1";
	char *const argv[] = { name, NULL };
	char *const env[] = { KS_TEST_HOOKS && getenv("KERN_TEST_NO_OPENAT2") ? no_openat2 : NULL, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t signals;

	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawnattr_init(&attr);
	(void)sigemptyset(&signals);
	(void)posix_spawnattr_setsigmask(&attr, &signals);
	(void)sigaddset(&signals, SIGPIPE);
	(void)posix_spawnattr_setsigdefault(&attr, &signals);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	int rc = posix_spawn_file_actions_adddup2(&actions, sock, KS_WORKER_SOCKET);
	if (rc == 0)
		rc = posix_spawn(ret, program, &actions, &attr, argv, env);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

static void send_setup(struct ks_worker *worker, const struct ks_worker_config *config)
{
	struct ks_buf setup = { 0 };
	int fds[KS_ROOTS_MAX];

	ks_pack_int(&setup, getpid());
	ks_pack_int(&setup, config->become);
	ks_pack_int(&setup, config->uid);
	ks_pack_int(&setup, config->gid);
	for (size_t i = 0; i < config->root_count; i++) {
		ks_pack_int(&setup, config->roots[i].writable);
		fds[i] = config->roots[i].fd;
	}
	send_frame(worker, KS_JOB_SETUP, &setup, fds, (int)config->root_count);
	ks_buf_free(&setup);
}

static void watch(struct ks_worker *worker, uv_poll_t *poll, int fd, uv_poll_cb callback)
{
	(void)uv_poll_init(worker->loop, poll, fd);
	poll->data = worker;
	worker->handles++;
	(void)uv_poll_start(poll, UV_READABLE, callback);
}

int ks_worker_start(const struct ks_worker_config *config, struct ks_worker **ret, struct ks_error *err)
{
	int ends[2];

	if (config->root_count > KS_ROOTS_MAX)
		return ks_fail(err, KS_E_LIMIT, "more than %d directories", KS_ROOTS_MAX);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return ks_fail_errno(err, KS_E_INTERNAL, errno, "cannot start the worker");
	KS_AUTOCLOSE int own = ends[0], other = ends[1];
	KS_AUTOFREE struct ks_worker *worker = calloc(1, sizeof(*worker));
	if (!worker)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	*worker = (struct ks_worker){ .loop = config->loop, .ended = config->ended, .arg = config->arg };
	ks_list_init(&worker->jobs);
	int rc = spawn(config->program, other, &worker->pid);
	if (rc < 0) {
		(void)ks_fail_errno(err, KS_E_INTERNAL, -rc, "cannot start %s", config->program);
		return ks_error_hint(err, "kern-worker belongs beside kern-sidecar: build or install it whole");
	}
	worker->pidfd = ks_pidfd_open(worker->pid);
	if (worker->pidfd < 0) {
		(void)ks_fail_errno(err, KS_E_INTERNAL, errno, "cannot start the worker");
		(void)kill(worker->pid, SIGKILL);
		(void)waitpid(worker->pid, NULL, 0);
		return -1;
	}
	worker->sock = KS_TAKE_FD(own);
	watch(worker, &worker->pid_poll, worker->pidfd, on_dead);
	watch(worker, &worker->sock_poll, worker->sock, on_socket);
	send_setup(worker, config);
	*ret = KS_TAKE_PTR(worker);
	return 0;
}
