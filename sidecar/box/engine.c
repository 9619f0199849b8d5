#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pidfd.h"
#include "base/program.h"
#include "engine_impl.h"
#include "launcher.h"

/* ---- messages to the launcher ---- */

struct pending {
	struct ks_list node;
	struct ks_msg msg;
	int fds[KS_MSG_FDS], nfds; /* our own copies */
};

static struct ks_group *find_group(struct ks_engine *engine, uint32_t number)
{
	for (struct ks_list *n = engine->groups.next; n != &engine->groups; n = n->next)
		if (KS_ENTRY(n, struct ks_group, node)->number == number)
			return KS_ENTRY(n, struct ks_group, node);
	return NULL;
}

static void group_ended(struct ks_group *group)
{
	struct ks_error err;

	ks_list_remove(&group->node);
	ks_box_group_ended(group->engine, group->number);
	if (!group->failed && !group->closing) {
		(void)ks_fail(&err, KS_E_START_FAILED, "the session's processes ended by themselves");
		group->ops->failed(group->arg, &err);
	}
	group->ops->ended(group->arg);
	free(group);
}

static void on_control(uv_poll_t *poll, int status, int events);

static void launcher_lost(struct ks_engine *engine)
{
	if (engine->lost)
		return;
	engine->lost = true;
	(void)uv_poll_stop(&engine->control_poll);
	/* It was pid 1 of everything: the kernel kills what ran below it, and nobody is left to tell us one by one. */
	ks_box_lose_all(engine);
	while (!ks_list_empty(&engine->groups))
		group_ended(KS_ENTRY(engine->groups.next, struct ks_group, node));
	if (engine->on_lost)
		engine->on_lost(engine->on_lost_arg);
}

static void flush_pending(struct ks_engine *engine)
{
	while (!ks_list_empty(&engine->outgoing)) {
		struct pending *p = KS_ENTRY(engine->outgoing.next, struct pending, node);
		if (ks_send(engine->control, &p->msg, sizeof(p->msg), p->fds, p->nfds, MSG_DONTWAIT) == -EAGAIN)
			return;
		ks_close_all(p->fds, p->nfds);
		ks_list_remove(&p->node);
		free(p);
	}
	if (!engine->lost)
		(void)uv_poll_start(&engine->control_poll, UV_READABLE, on_control);
}

void ks_engine_send(struct ks_engine *engine, const struct ks_msg *msg, const int *fds, int nfds)
{
	if (ks_list_empty(&engine->outgoing) &&
	    ks_send(engine->control, msg, sizeof(*msg), fds, nfds, MSG_DONTWAIT) != -EAGAIN)
		return; /* sent, or the launcher is gone: reading says so */
	struct pending *p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->msg = *msg;
	for (int i = 0; i < nfds; i++)
		p->fds[p->nfds++] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
	ks_list_append(&engine->outgoing, &p->node);
	(void)uv_poll_start(&engine->control_poll, UV_READABLE | UV_WRITABLE, on_control);
}

/* ---- messages from it ---- */

static void group_message(struct ks_engine *engine, const struct ks_msg *msg, int *fds, int nfds)
{
	struct ks_group *group = find_group(engine, msg->group);

	if (!group)
		return;
	if (msg->op == KS_OP_GROUP_READY && !group->closing) {
		group->ops->ready(group->arg, nfds == 1 ? KS_TAKE_FD(fds[0]) : -1);
	} else if (msg->op == KS_OP_GROUP_FAILED && !group->failed) {
		group->failed = true;
		if (!group->closing)
			group->ops->failed(group->arg, &msg->u.error);
	} else if (msg->op == KS_OP_GROUP_ENDED) {
		group_ended(group);
	}
}

static void handle(struct ks_engine *engine, const struct ks_msg *msg, int *fds, int nfds)
{
	struct ks_box *box = msg->box ? ks_box_find(engine, msg->box) : NULL;

	if (msg->op == KS_OP_BOX_MADE && box) {
		ks_box_made(box, nfds == 1 ? NULL : &msg->u.error, nfds == 1 ? KS_TAKE_FD(fds[0]) : -1);
	} else if (msg->op == KS_OP_BOX_ENDED && box) {
		ks_box_reaped(box);
	} else if (!msg->box) {
		group_message(engine, msg, fds, nfds);
	}
	ks_close_all(fds, nfds);
}

static void on_control(uv_poll_t *poll, int status, int events)
{
	struct ks_engine *engine = poll->data;
	struct ks_msg msg;
	int fds[KS_MSG_FDS], nfds;

	if (events & UV_WRITABLE)
		flush_pending(engine);
	/* bounded, so that a burst of ends does not starve the rest of the loop */
	for (int i = 0; i < 64 && !engine->lost; i++) {
		ssize_t n = ks_recv(engine->control, &msg, sizeof(msg), fds, &nfds, MSG_DONTWAIT);
		if (n == -EAGAIN)
			return;
		if (n != (ssize_t)sizeof(msg) || status < 0) {
			launcher_lost(engine);
			return;
		}
		handle(engine, &msg, fds, nfds);
	}
}

/* ---- start and end ---- */

int ks_engine_start(const struct ks_engine_config *config, struct ks_engine **ret, struct ks_error *err)
{
	if (ks_program_sealed(err) < 0)
		return -1;
	struct ks_engine *engine = calloc(1, sizeof(*engine));
	struct ks_launcher_config *launcher = calloc(1, sizeof(*launcher));
	struct ks_cgroups_config cgroups = { 0 };

	if (!engine || !launcher)
		abort();
	engine->launcher_config = launcher;
	engine->control = -1;
	engine->is_root = geteuid() == 0;
	ks_list_init(&engine->groups);
	ks_list_init(&engine->boxes);
	ks_list_init(&engine->outgoing);
	(void)snprintf(engine->fail_step, sizeof(engine->fail_step), "%s", config->fail_step ? config->fail_step : "");
	*launcher = (struct ks_launcher_config){ .is_root = engine->is_root, .uid = geteuid(), .gid = getegid(),
						 .arguments = config->arguments, .arguments_len = config->arguments_len,
						 .fail_step = engine->fail_step };
	/* before the fork: on cgroup v2 we move to a leaf, and the launcher must be born in it */
	if (ks_cgroups_open(&cgroups, &engine->cgroups, err) < 0)
		goto failed;
	engine->limits = *ks_cgroups_status(engine->cgroups);
	engine->pids_by_rlimit = engine->limits.enforced[KS_LIMIT_PIDS] != KS_ENFORCED_KERNEL;
	engine->limits.enforced[KS_LIMIT_PIDS] = KS_ENFORCED_KERNEL;
	engine->limits.reason[KS_LIMIT_PIDS][0] = '\0';
	if (ks_filter_escape(&launcher->escape, err) < 0 || ks_filter_zygote(&launcher->zygote, err) < 0 ||
	    ks_launcher_start(launcher, &engine->control, &engine->launcher, err) < 0)
		goto failed;
	*ret = engine;
	return 0;
failed:
	ks_cgroups_close(engine->cgroups);
	free(launcher);
	free(engine);
	return -1;
}

static void on_insist(uv_timer_t *timer)
{
	ks_box_insist(timer->data);
}

int ks_engine_attach(struct ks_engine *engine, uv_loop_t *loop, void (*on_lost)(void *arg), void *arg, struct ks_error *err)
{
	engine->loop = loop;
	engine->on_lost = on_lost;
	engine->on_lost_arg = arg;
	(void)uv_timer_init(loop, &engine->insist_timer);
	engine->insist_timer.data = engine;
	int rc = uv_poll_init(loop, &engine->control_poll, engine->control);
	if (rc < 0)
		return ks_fail_errno(err, KS_E_INTERNAL, -rc, "cannot watch the launcher");
	engine->control_poll.data = engine;
	engine->attached = true;
	rc = uv_poll_start(&engine->control_poll, UV_READABLE, on_control);
	return rc < 0 ? ks_fail_errno(err, KS_E_INTERNAL, -rc, "cannot watch the launcher") : 0;
}

void ks_engine_start_insisting(struct ks_engine *engine)
{
	if (!uv_is_active((uv_handle_t *)&engine->insist_timer))
		(void)uv_timer_start(&engine->insist_timer, on_insist, 20, 20);
}

/* A process in uninterruptible sleep can hold the launcher's end up: we do not wait for it longer than this. */
#define STOP_WAIT_US 900000

void ks_engine_stop(struct ks_engine *engine)
{
	KS_AUTOCLOSE int pidfd = ks_pidfd_open(engine->launcher); /* none: then every millisecond */
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	int64_t until = ks_now_us() + STOP_WAIT_US;

	(void)kill(engine->launcher, SIGKILL); /* pid 1 of everything */
	while (waitpid(engine->launcher, NULL, WNOHANG) == 0 && ks_now_us() < until)
		(void)poll(&end, 1, 1);
	engine->lost = true;
	if (engine->attached) {
		uv_close((uv_handle_t *)&engine->control_poll, NULL);
		uv_close((uv_handle_t *)&engine->insist_timer, NULL);
	}
	ks_close(&engine->control);
	ks_box_drop_all(engine);
	ks_cgroups_close(engine->cgroups);
	engine->cgroups = NULL;
}

void ks_engine_free(struct ks_engine *engine)
{
	while (!ks_list_empty(&engine->groups)) {
		struct ks_group *group = KS_ENTRY(engine->groups.next, struct ks_group, node);
		ks_list_remove(&group->node);
		free(group);
	}
	while (!ks_list_empty(&engine->outgoing)) {
		struct pending *p = KS_ENTRY(engine->outgoing.next, struct pending, node);
		ks_close_all(p->fds, p->nfds);
		ks_list_remove(&p->node);
		free(p);
	}
	for (int i = 0; i < 4; i++)
		free(engine->filters[i / 2][i % 2].code);
	free(engine->launcher_config);
	free(engine);
}

bool ks_engine_is_root(const struct ks_engine *engine)
{
	return engine->is_root;
}

const struct ks_cgroup_status *ks_engine_limits(const struct ks_engine *engine)
{
	return &engine->limits;
}

int ks_engine_limit_all(struct ks_engine *engine, int64_t memory_bytes, int64_t pids, struct ks_error *err)
{
	return ks_cgroups_limit_all(engine->cgroups, memory_bytes, pids, err);
}

const struct ks_filter *ks_engine_filters(struct ks_engine *engine, bool untrusted, struct ks_error *err)
{
	const bool polled = engine->limits.enforced[KS_LIMIT_MEMORY] != KS_ENFORCED_KERNEL;
	const unsigned flags = (polled ? KS_FILTER_NO_HIDDEN_MEMORY : 0) | (untrusted ? KS_FILTER_UNTRUSTED : 0);
	struct ks_filter *filters = engine->filters[untrusted];

	/* it takes libseccomp 2 ms: once, when it is first asked for */
	if (!filters[1].code && (ks_filter_allowlist(flags, &filters[0], err) < 0 || ks_filter_arguments(flags, &filters[1], err) < 0))
		return NULL;
	return filters;
}

bool ks_engine_box_user_ns(const struct ks_engine *engine)
{
	return engine->pids_by_rlimit;
}

const char *ks_engine_fail_step(const struct ks_engine *engine)
{
	return engine->fail_step;
}

unsigned ks_engine_boxes(const struct ks_engine *engine)
{
	return engine->alive;
}

/* ---- groups ---- */

struct ks_group *ks_group_open(struct ks_engine *engine, const struct ks_plan *plan, const struct ks_group_ops *ops, void *arg,
			       struct ks_error *err)
{
	int fds[KS_MSG_FDS], nfds = 0;

	if (engine->lost) {
		(void)ks_fail(err, KS_E_START_FAILED, "the launcher has died; start the sidecar again");
		return NULL;
	}
	KS_AUTOCLOSE int packed = ks_plan_pack(plan, err);
	struct ks_group *group = packed < 0 ? NULL : calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	*group = (struct ks_group){ .engine = engine, .number = ++engine->last_number, .ops = ops, .arg = arg };
	ks_list_append(&engine->groups, &group->node);
	fds[nfds++] = packed;
	for (int i = 0; i < plan->nfds; i++)
		fds[nfds++] = plan->fds[i];
	struct ks_msg msg = { .op = KS_OP_GROUP_OPEN, .group = group->number };
	ks_engine_send(engine, &msg, fds, nfds);
	return group;
}

void ks_group_send_memory(struct ks_group *group, int sock)
{
	struct ks_msg msg = { .op = KS_OP_SEND_MEMORY, .group = group->number };

	ks_engine_send(group->engine, &msg, &sock, 1);
}

void ks_group_close(struct ks_group *group)
{
	struct ks_msg msg = { .op = KS_OP_GROUP_CLOSE, .group = group->number };

	if (group->closing)
		return;
	group->closing = true;
	ks_engine_send(group->engine, &msg, NULL, 0);
}
