#include "box.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine_impl.h"
#include "sys.h"

struct listener {
	int fd; /* -1: none, or not any more */
	uv_poll_t poll;
};

struct ks_box {
	struct ks_list node;
	struct ks_engine *engine;
	uint32_t number, group;
	const struct ks_box_ops *ops; /* NULL once released */
	void *arg;
	struct ks_leaf *leaf;
	struct ks_box_limits limits;
	bool is_zygote;
	struct listener listeners[2]; /* of init and what it starts; of a main process that has come in (join.h) */
	int sock, init_pidfd, main_pidfd;
	int main_pid;  /* 0: not asked for yet */
	int64_t started_us;
	int main_stat; /* its /proc/PID/stat, once somebody has asked for it */
	uv_poll_t sock_poll;
	int handles; /* open uv handles, and one for the box itself until it is buried; freed at none */
	bool answered; /* the launcher said MADE or failed */
	bool reaped, claimed, ready, reported, killed_by_us, listener_lost;
	struct ks_escape escape;
};

static void read_socket(struct ks_box *box);

/* ---- life ---- */

static void on_handle_closed(uv_handle_t *handle)
{
	struct ks_box *box = handle->data;

	if (--box->handles == 0)
		free(box);
}

static void stop_watching(uv_poll_t *poll, int *fd)
{
	if (*fd < 0)
		return;
	uv_close((uv_handle_t *)poll, on_handle_closed);
	ks_close(fd);
}

/* False: what *fd is cannot be watched, and it has been closed. */
static bool start_watching(struct ks_box *box, uv_poll_t *poll, int *fd, uv_poll_cb cb)
{
	if (uv_poll_init(box->engine->loop, poll, *fd) < 0) {
		ks_close(fd);
		return false;
	}
	poll->data = box;
	box->handles++;
	if (uv_poll_start(poll, UV_READABLE | UV_DISCONNECT, cb) == 0)
		return true;
	stop_watching(poll, fd);
	return false;
}

/* The last process is gone: the leaf goes back, the number is free. */
static void bury(struct ks_box *box)
{
	const struct ks_box_ops *ops = box->ops;

	ks_list_remove(&box->node);
	box->engine->alive--;
	ks_escape_insist(&box->escape, INT64_MAX);
	ks_leaf_release(box->engine->cgroups, box->leaf);
	box->leaf = NULL;
	ks_close(&box->init_pidfd);
	ks_close(&box->main_pidfd);
	ks_close(&box->main_stat);
	box->ops = NULL;
	stop_watching(&box->sock_poll, &box->sock);
	for (int i = 0; i < 2; i++)
		stop_watching(&box->listeners[i].poll, &box->listeners[i].fd);
	if (ops)
		ops->gone(box->arg);
	if (--box->handles == 0)
		free(box);
}

static void report_failure(struct ks_box *box, const struct ks_error *err)
{
	if (box->reported)
		return;
	box->reported = true;
	if (box->ops)
		box->ops->failed(box->arg, err);
}

static void report_end(struct ks_box *box, enum ks_end_how how, const struct ks_exit_report *report)
{
	struct ks_box_end end = { .how = how, .killed_by_us = box->killed_by_us, .listener_lost = box->listener_lost };

	if (box->reported)
		return;
	box->reported = true;
	if (report) {
		end.wait_status = report->wait_status;
		end.exec_errno = report->error_number;
		end.wall_us = report->wall_us;
		end.user_us = report->user_us;
		end.system_us = report->system_us;
		end.max_rss_bytes = report->max_rss_bytes;
		end.alone = report->alone;
		end.polled_oom = report->polled_oom;
	}
	/* The kernel counts an OOM kill before it sends the SIGKILL, so the counter is up when a status says 9. */
	if (box->leaf)
		ks_leaf_facts(box->leaf, &end.leaf);
	if (box->ops)
		box->ops->ended(box->arg, &end);
}

static void on_main_end(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	bury(poll->data);
}

/* The main process of a zygote may end behind its init, when both are killed with the session: no pid namespace of their own holds
 * that up. */
static bool is_outlived(struct ks_box *box)
{
	struct listener *unused = &box->listeners[0]; /* a zygote has none */

	if (!box->is_zygote || box->main_pidfd < 0 || box->engine->lost || ks_pidfd_kill(box->main_pidfd, SIGKILL) < 0)
		return false;
	unused->fd = KS_TAKE_FD(box->main_pidfd);
	return start_watching(box, &unused->poll, &unused->fd, on_main_end);
}

void ks_box_reaped(struct ks_box *box)
{
	struct ks_error err;

	if (box->reaped)
		return;
	box->reaped = true;
	read_socket(box); /* its last words may still lie there */
	if (!box->reported) {
		if (box->ready || box->killed_by_us) {
			report_end(box, KS_END_LOST, NULL);
		} else {
			(void)ks_fail(&err, KS_E_START_FAILED, "the box died while it was set up");
			report_failure(box, &err);
		}
	}
	if (!is_outlived(box))
		bury(box);
}

void ks_box_made(struct ks_box *box, const struct ks_error *err, int pidfd)
{
	if (box->answered) {
		if (pidfd >= 0)
			(void)close(pidfd);
		return;
	}
	box->answered = true;
	box->init_pidfd = pidfd;
	if (err) {
		report_failure(box, err);
		box->reaped = true;
		bury(box);
		return;
	}
	if (box->killed_by_us || !box->ops)
		ks_box_kill(box);
}

struct ks_box *ks_box_find(struct ks_engine *engine, uint32_t number)
{
	for (struct ks_list *n = engine->boxes.next; n != &engine->boxes; n = n->next)
		if (KS_ENTRY(n, struct ks_box, node)->number == number)
			return KS_ENTRY(n, struct ks_box, node);
	return NULL;
}

/* ---- what the box says ---- */

static void on_listener(uv_poll_t *poll, int status, int events)
{
	struct ks_box *box = poll->data;
	struct listener *listener = poll == &box->listeners[0].poll ? &box->listeners[0] : &box->listeners[1];

	/* EPOLLERR comes as a status: the kernel's poll of a listener says so when a signal interrupts it. That is no end. */
	if (status < 0 || !(events & UV_DISCONNECT)) {
		if (status == 0 && ks_escape_answer(listener->fd, &box->escape, ks_now_us())) {
			if (box->escape.doomed >= 0)
				ks_engine_start_insisting(box->engine);
			return;
		}
		/* Nobody answers the next one: such a box must not go on. */
		ks_log(KS_LOG_ERROR, "listener_lost", "a seccomp listener is broken; its box is killed");
		box->listener_lost = true;
		ks_box_kill(box);
	}
	stop_watching(&listener->poll, &listener->fd); /* disconnected: no process of that filter is left */
}

static bool listen_to(struct ks_box *box, struct listener *listener, int fd)
{
	listener->fd = fd;
	if (fd >= 0 && start_watching(box, &listener->poll, &listener->fd, on_listener))
		return true;
	box->listener_lost = true; /* without its listener a box is not one */
	ks_box_kill(box);
	return false;
}

static void on_ready(struct ks_box *box, int *fds, int nfds)
{
	box->ready = true;
	if (!box->is_zygote && !listen_to(box, &box->listeners[0], nfds == 1 ? KS_TAKE_FD(fds[0]) : -1))
		return;
	if (box->ops && box->ops->ready)
		box->ops->ready(box->arg);
}

static void on_started(struct ks_box *box, int *fds, int nfds)
{
	if (nfds >= 1 && box->main_pidfd < 0)
		box->main_pidfd = KS_TAKE_FD(fds[0]);
	if (nfds == 2 && !listen_to(box, &box->listeners[1], KS_TAKE_FD(fds[1])))
		return;
	box->started_us = ks_now_us();
	if (box->ops && !box->reported)
		box->ops->started(box->arg);
}

static void on_message(struct ks_box *box, const struct ks_msg *msg, int *fds, int nfds)
{
	switch (msg->op) {
	case KS_OP_READY:
		on_ready(box, fds, nfds);
		break;
	case KS_OP_STARTED:
		on_started(box, fds, nfds);
		break;
	case KS_OP_FAILED:
		report_failure(box, &msg->u.error);
		break;
	case KS_OP_EXEC_FAILED:
		report_end(box, KS_END_EXEC_FAILED, &msg->u.exit);
		break;
	case KS_OP_EXITED:
		report_end(box, KS_END_EXITED, &msg->u.exit);
		break;
	default:
		break;
	}
}

static void read_socket(struct ks_box *box)
{
	struct ks_msg msg;
	int fds[KS_MSG_FDS], nfds;

	while (box->sock >= 0) {
		ssize_t n = ks_recv(box->sock, &msg, sizeof(msg), fds, &nfds, MSG_DONTWAIT);
		/* A peer that ends with our claim unread raises ECONNRESET once, in front of what it had sent: its reason. */
		if (n == -ECONNRESET)
			continue;
		if (n == (ssize_t)sizeof(msg)) {
			on_message(box, &msg, fds, nfds);
			ks_close_all(fds, nfds);
			continue;
		}
		if (n != -EAGAIN)
			stop_watching(&box->sock_poll, &box->sock);
		return;
	}
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	read_socket(poll->data);
}

/* ---- making and claiming ---- */

static int set_limits(struct ks_box *box, const struct ks_box_limits *limits, struct ks_error *err)
{
	if (box->leaf && ks_leaf_limit(box->leaf, limits->memory_bytes, limits->pids, limits->cpus_milli, err) < 0)
		return -1;
	if (box->leaf && limits->memory_files)
		ks_leaf_spend(box->leaf);
	box->limits = *limits;
	return 0;
}

static int prepare_leaf(struct ks_box *box, const struct ks_box_limits *limits, int *fds, int *nfds, uint32_t *flags,
			struct ks_error *err)
{
	const unsigned enter = limits->cpus_milli > 0 || limits->any_cpus ? KS_ENTER_CPU : 0;

	if (!limits->enforce)
		return set_limits(box, limits, err);
	if (box->engine->pids_by_rlimit)
		*flags |= KS_BOX_OWN_USER_NS;
	box->leaf = ks_leaf_take(box->engine->cgroups, err);
	int count = box->leaf ? ks_leaf_enter_fds(box->leaf, enter, fds + *nfds, err) : -1;
	if (count < 0 || set_limits(box, limits, err) < 0)
		return -1;
	int dir = ks_leaf_dir_fd(box->leaf);
	*nfds += count;
	if (dir >= 0) {
		fds[(*nfds)++] = dir;
		*flags |= KS_BOX_INTO_CGROUP;
	}
	return 0;
}

static bool same_limits(const struct ks_box_limits *a, const struct ks_box_limits *b)
{
	return a->memory_bytes == b->memory_bytes && a->pids == b->pids && a->cpus_milli == b->cpus_milli;
}

int ks_box_adopt(struct ks_box *box, const struct ks_box_limits *limits, const struct ks_box_ops *ops, void *arg, struct ks_error *err)
{
	if (!same_limits(&box->limits, limits) && set_limits(box, limits, err) < 0)
		return -1;
	box->limits.file_bytes = limits->file_bytes;
	box->ops = ops;
	box->arg = arg;
	return 0;
}

bool ks_box_is_ready(const struct ks_box *box)
{
	return box->ready && !box->reported && !box->killed_by_us;
}

static struct ks_box *make(struct ks_group *group, bool is_zygote, const struct ks_box_limits *limits, const struct ks_box_ops *ops,
			   void *arg, struct ks_error *err)
{
	struct ks_engine *engine = group->engine;
	int pair[2], fds[2 + KS_LEAF_FDS], nfds = 1;

	if (engine->lost || group->failed || group->closing) {
		(void)ks_fail(err, KS_E_START_FAILED, "the session's template is gone");
		return NULL;
	}
	struct ks_box *box = calloc(1, sizeof(*box));
	if (!box || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		(void)ks_fail_errno(err, KS_E_OVERLOADED, errno, "cannot make a socket for a box");
		free(box);
		return NULL;
	}
	*box = (struct ks_box){ .engine = engine, .number = ++engine->last_number, .group = group->number, .ops = ops, .arg = arg,
				.is_zygote = is_zygote, .sock = pair[0], .listeners = { { .fd = -1 }, { .fd = -1 } }, .init_pidfd = -1,
				.main_pidfd = -1, .main_stat = -1, .escape.doomed = -1, .handles = 1 };
	struct ks_msg msg = { .op = KS_OP_BOX_MAKE, .group = group->number, .box = box->number };
	fds[0] = pair[1];
	bool prepared = prepare_leaf(box, limits, fds, &nfds, &msg.flags, err) == 0;
	if (prepared && uv_poll_init(engine->loop, &box->sock_poll, box->sock) < 0)
		prepared = ks_fail(err, KS_E_OVERLOADED, "cannot watch a box's socket") == 0;
	if (!prepared) {
		ks_leaf_release(engine->cgroups, box->leaf);
		ks_close_all(pair, 2);
		free(box);
		return NULL;
	}
	box->sock_poll.data = box;
	box->handles++;
	(void)uv_poll_start(&box->sock_poll, UV_READABLE | UV_DISCONNECT, on_socket);
	ks_list_append(&engine->boxes, &box->node);
	engine->alive++;
	if (is_zygote)
		msg.flags = (msg.flags & ~KS_BOX_OWN_USER_NS) | KS_BOX_ZYGOTE;
	ks_engine_send(engine, &msg, fds, nfds);
	(void)close(pair[1]);
	return box;
}

struct ks_box *ks_box_make(struct ks_group *group, const struct ks_box_limits *limits, const struct ks_box_ops *ops, void *arg,
			   struct ks_error *err)
{
	return make(group, false, limits, ops, arg, err);
}

struct ks_box *ks_box_make_zygote(struct ks_group *group, const struct ks_box_limits *limits, const struct ks_box_ops *ops, void *arg,
				  struct ks_error *err)
{
	return make(group, true, limits, ops, arg, err);
}

int ks_box_entrance(struct ks_box *box, int sock, int ret_fds[1 + KS_LEAF_FDS], struct ks_error *err)
{
	const unsigned enter = box->limits.cpus_milli > 0 || box->limits.any_cpus ? KS_ENTER_CPU : 0;
	int count = box->leaf ? ks_leaf_enter_fds(box->leaf, enter, ret_fds + 1, err) : 0;

	ret_fds[0] = sock;
	return count < 0 ? -1 : 1 + count;
}

#define BOX_NOFILE 65536u

static void fill_limits(const struct ks_box *box, struct ks_claim *head)
{
	const struct ks_box_limits *limits = &box->limits;
	const struct ks_engine *engine = box->engine;

	head->nofile = BOX_NOFILE;
	head->memory_bytes = (uint64_t)limits->memory_bytes;
	head->file_bytes = (uint64_t)limits->file_bytes;
	if (box->is_zygote)
		return; /* what it forks is counted and looked at where it is */
	if (limits->enforce && engine->pids_by_rlimit)
		head->nproc = (uint32_t)(limits->pids + KS_LEAF_OVERHEAD);
	if (limits->enforce && engine->limits.enforced[KS_LIMIT_MEMORY] == KS_ENFORCED_POLLED)
		head->flags |= KS_CLAIM_POLL_MEMORY;
	if (limits->cpus_milli > 0)
		head->cpus = (uint32_t)((limits->cpus_milli + 999) / 1000);
}

int ks_box_claim(struct ks_box *box, const struct ks_command_spec *spec, struct ks_error *err)
{
	struct ks_claim head = { 0 };
	int fds[KS_CLAIM_FDS], nfds = 0;
	KS_AUTOBUF struct ks_buf body = { 0 }, message = { 0 };
	KS_AUTOCLOSE int memfd = -1;

	if (box->claimed)
		return ks_fail(err, KS_E_INTERNAL, "a box is claimed once");
	box->claimed = true;
	fill_limits(box, &head);
	if (ks_claim_pack(spec, &head, &body, err) < 0)
		return -1;
	if (spec->join_fd >= 0) {
		head.flags |= KS_CLAIM_JOIN;
		fds[nfds++] = spec->join_fd;
	}
	if (body.len > KS_CLAIM_INLINE) {
		memfd = memfd_create("claim", MFD_CLOEXEC);
		if (memfd < 0 || pwrite(memfd, body.data, body.len, 0) != (ssize_t)body.len)
			return ks_fail_errno(err, KS_E_OVERLOADED, errno, "cannot hand the code to the box");
		head.flags |= KS_CLAIM_MEMFD;
		fds[nfds++] = memfd;
		ks_buf_clear(&body);
	}
	for (int i = 0; i < 3; i++)
		fds[nfds++] = spec->stdio[i];
	if (spec->result_fd >= 0) {
		head.flags |= KS_CLAIM_RESULT;
		fds[nfds++] = spec->result_fd;
	}
	ks_buf_add(&message, &head, sizeof(head));
	ks_buf_add(&message, body.data, body.len);
	if (message.failed)
		return ks_fail(err, KS_E_OVERLOADED, "out of memory");
	if (box->sock < 0)
		return 0; /* it has failed already, and says why */
	int rc = ks_send(box->sock, message.data, message.len, fds, nfds, MSG_DONTWAIT);
	if (rc < 0 && rc != -EPIPE && rc != -ECONNRESET)
		return ks_fail_errno(err, KS_E_OVERLOADED, -rc, "cannot hand the command to the box");
	return 0;
}

/* ---- its main process ---- */

#define PF_EXITING 0x4u /* linux/sched.h; proc(5) shows the flags as they are */

/* A /proc of another namespace, as some containers have it, has other numbers. */
static bool proc_is_ours(void)
{
	static int ours = -1;
	char number[16] = "";

	if (ours < 0)
		ours = readlink("/proc/self", number, sizeof(number) - 1) > 0 && atoi(number) == getpid();
	return ours;
}

/* An open file of /proc/PID is of that process, not of whatever has its number later: read(2) says ESRCH when it is gone. Between
 * the two looks at the number nobody else can have got it: the first says that the process was there, the second that it still is. */
static int open_stat(int pidfd)
{
	const bool ours = proc_is_ours();
	const int pid = ks_pidfd_pid(pidfd, ours);
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	KS_AUTOCLOSE int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	return ks_pidfd_pid(pidfd, ours) == pid ? KS_TAKE_FD(fd) : -1;
}

int ks_box_main_pid(struct ks_box *box)
{
	if (box->main_pid == 0 && box->main_pidfd >= 0)
		box->main_pid = proc_is_ours() ? ks_pidfd_pid(box->main_pidfd, true) : -1;
	return box->main_pidfd >= 0 && box->main_pid > 0 ? box->main_pid : -1;
}

struct process {
	unsigned flags; /* PF_* */
	long threads;
	int64_t children_us; /* cpu time of the children that it has waited for */
};

/* proc(5): the fields behind the name, which may hold anything. False: there is no such process, or it cannot be seen. */
static bool read_process(struct ks_box *box, struct ks_box_end *ret, struct process *ret_process)
{
	const int64_t tick_us = 1000000 / sysconf(_SC_CLK_TCK);
	unsigned long user = 0, kernel = 0;
	long pages = 0, children_user = 0, children_kernel = 0;
	char text[1024];

	if (box->main_stat < 0)
		box->main_stat = open_stat(box->main_pidfd);
	ssize_t n = box->main_stat < 0 ? -1 : pread(box->main_stat, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	const char *rest = strrchr(text, ')');
	if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %lu %lu %ld %ld %*d %*d %ld %*d %*u %*u %ld",
			    &ret_process->flags, &user, &kernel, &children_user, &children_kernel, &ret_process->threads, &pages) != 7)
		return false;
	ret->user_us = (int64_t)user * tick_us;
	ret->system_us = (int64_t)kernel * tick_us;
	ret->max_rss_bytes = (int64_t)pages * sysconf(_SC_PAGESIZE);
	ret_process->children_us = (children_user + children_kernel) * tick_us;
	return true;
}

static int64_t others(struct ks_box *box, struct ks_box_end *ret, struct process *ret_process)
{
	const int64_t tasks = box->leaf && box->main_pidfd >= 0 ? ks_leaf_tasks_now(box->leaf) : -1;

	return tasks > 0 && read_process(box, ret, ret_process) ? tasks - ret_process->threads : -1;
}

int64_t ks_box_others(struct ks_box *box)
{
	struct ks_box_end ignored;
	struct process main;

	return others(box, &ignored, &main);
}

/* ---- ends ---- */

static void kill_all(struct ks_box *box)
{
	if (box->reaped || box->init_pidfd < 0)
		return; /* not made yet: as soon as it is */
	if (box->leaf)
		ks_leaf_kill(box->leaf);
	/* no pid namespace ends with the init of a zygote: it goes when it has reaped what it has started */
	(void)ks_pidfd_kill(box->is_zygote && box->main_pidfd >= 0 ? box->main_pidfd : box->init_pidfd, SIGKILL);
}

void ks_box_kill(struct ks_box *box)
{
	box->killed_by_us = true;
	kill_all(box);
}

/* Both together to the nanosecond (clock_getcpuclockid(3)); how they are shared out is known in ticks only. */
static void measure_cpu(struct ks_box *box, struct ks_exit_report *report)
{
	clockid_t clock;
	struct timespec used;

	if (clock_getcpuclockid(ks_box_main_pid(box), &clock) != 0 || clock_gettime(clock, &used) < 0)
		return;
	const int64_t all_us = used.tv_sec * 1000000 + used.tv_nsec / 1000, ticks_us = report->user_us + report->system_us;
	report->system_us = ticks_us > 0 ? all_us * report->system_us / ticks_us : 0;
	report->user_us = all_us - report->system_us;
}

bool ks_box_conclude(struct ks_box *box, int exit_code)
{
	struct ks_box_end now;
	struct process main;

	if (box->reported || box->killed_by_us || others(box, &now, &main) != 1)
		return false;
	if (ks_leaf_memory_now(box->leaf) < 0)
		return false; /* then the peak is told by the end only */
	struct ks_exit_report report = { .wait_status = exit_code << 8, .wall_us = ks_now_us() - box->started_us, .user_us = now.user_us,
					 .system_us = now.system_us, .max_rss_bytes = now.max_rss_bytes, .alone = 1 };
	measure_cpu(box, &report);
	report.user_us += main.children_us;
	kill_all(box);
	report_end(box, KS_END_EXITED, &report);
	return true;
}

int ks_box_signal(struct ks_box *box, int signal_number)
{
	if (box->main_pidfd < 0 || box->reported)
		return -ESRCH;
	return ks_pidfd_kill(box->main_pidfd, signal_number) < 0 ? -errno : 0;
}

void ks_box_release(struct ks_box *box)
{
	box->ops = NULL;
	if (!box->reported)
		ks_box_kill(box);
	else if (!box->killed_by_us && !box->reaped && box->init_pidfd >= 0)
		(void)ks_pidfd_kill(box->init_pidfd, SIGKILL); /* init is on its way out; this only makes sure */
}

bool ks_box_lives(struct ks_box *box)
{
	struct ks_box_end ignored;
	struct process main;

	return box->main_pidfd >= 0 && !box->reported && read_process(box, &ignored, &main) && !(main.flags & PF_EXITING);
}

bool ks_group_is_quiet(struct ks_group *group)
{
	for (struct ks_list *n = group->engine->boxes.next; n != &group->engine->boxes; n = n->next) {
		const struct ks_box *box = KS_ENTRY(n, struct ks_box, node);
		if (box->group == group->number && !box->ops)
			return false;
	}
	return true;
}

void ks_box_usage(struct ks_box *box, struct ks_box_end *ret)
{
	struct process main;

	memset(&ret->leaf, 0xff, sizeof(ret->leaf)); /* all -1: unknown */
	if (box->leaf)
		ks_leaf_facts(box->leaf, &ret->leaf);
	if (ret->leaf.cpu_user_us < 0 && box->main_pidfd >= 0)
		(void)read_process(box, ret, &main);
}

void ks_box_escape_begin(struct ks_box *box)
{
	box->escape.count = 0;
}

const struct ks_escape *ks_box_escape(const struct ks_box *box)
{
	return &box->escape;
}

void ks_box_insist(struct ks_engine *engine)
{
	bool more = false;

	for (struct ks_list *n = engine->boxes.next; n != &engine->boxes; n = n->next) {
		struct ks_box *box = KS_ENTRY(n, struct ks_box, node);
		ks_escape_insist(&box->escape, ks_now_us());
		more |= box->escape.doomed >= 0;
	}
	if (!more)
		(void)uv_timer_stop(&engine->insist_timer);
}

void ks_box_group_ended(struct ks_engine *engine, uint32_t group)
{
	struct ks_error err;

	(void)ks_fail(&err, KS_E_START_FAILED, "the session's template is gone");
	for (struct ks_list *n = engine->boxes.next, *next; n != &engine->boxes; n = next) {
		struct ks_box *box = KS_ENTRY(n, struct ks_box, node);
		next = n->next;
		if (box->group != group)
			continue;
		if (box->answered)
			ks_box_reaped(box);
		else
			ks_box_made(box, &err, -1);
	}
}

void ks_box_lose_all(struct ks_engine *engine)
{
	struct ks_error err;

	while (!ks_list_empty(&engine->boxes)) {
		struct ks_box *box = KS_ENTRY(engine->boxes.next, struct ks_box, node);
		(void)ks_fail(&err, KS_E_START_FAILED, "the launcher has died");
		if (box->reaped)
			bury(box);
		else if (box->answered)
			ks_box_reaped(box);
		else
			ks_box_made(box, &err, -1);
	}
}

void ks_box_drop_all(struct ks_engine *engine)
{
	while (!ks_list_empty(&engine->boxes)) {
		struct ks_box *box = KS_ENTRY(engine->boxes.next, struct ks_box, node);
		box->reaped = box->reported = true;
		box->ops = NULL;
		bury(box);
	}
}
