#include "session/zygote.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/join.h"
#include "base/log.h"
#include "session/call_parts.h"
#include "session/spares.h"

/* One interpreter. */
struct process {
	struct ks_list node;
	struct ks_zygote *zygote;
	struct ks_box *box;
	struct ks_call *host; /* pipes and channel, as those of a call */
	int64_t made_us;
	unsigned forks;
	bool ready;
};

struct ks_zygote {
	struct ks_session *session;
	const struct ks_language *language;
	void (*on_ready)(void *arg);
	void (*on_ended)(void *arg, enum ks_zygote_end how, const char *why);
	void *arg;
	struct ks_list processes;
	struct process *now, *next; /* what forks, or will; what takes its place. Others do what they were told, and end */
};

bool ks_zygote_possible(const struct ks_session *session, const struct ks_language *language)
{
	/* A session for one call has no use for it; capabilities and a profile of AppArmor come with an exec. */
	return (language->api.flags & KERN_CAN_FORK) && (!session->throwaway || session->anonymous.served) && session->keep_caps == 0 &&
	       !session->apparmor && !session->untrusted;
}

bool ks_zygote_is_ready(const struct ks_zygote *zygote)
{
	return zygote->now->ready;
}

/* ---- life ---- */

static void free_process(struct process *process)
{
	struct ks_zygote *zygote = process->zygote;

	if (zygote->next == process)
		zygote->next = NULL;
	ks_list_remove(&process->node);
	ks_call_unpark_done(process->host);
	free(process);
}

void ks_zygote_forget(struct ks_zygote *zygote)
{
	while (!ks_list_empty(&zygote->processes))
		free_process(KS_ENTRY(zygote->processes.next, struct process, node));
	free(zygote);
}

void ks_zygote_stop(struct ks_zygote *zygote)
{
	if (!zygote)
		return;
	for (struct ks_list *n = zygote->processes.next; n != &zygote->processes; n = n->next)
		ks_box_release(KS_ENTRY(n, struct process, node)->box);
	ks_zygote_forget(zygote);
}

static void end(struct process *process, enum ks_zygote_end how, const char *why)
{
	struct ks_zygote *zygote = process->zygote;

	ks_log(KS_LOG_INFO, "zygote_ended", "%s", why);
	if (process != zygote->now) {
		if (process == zygote->next)
			zygote->now->forks = 0; /* it goes on for that long again */
		ks_box_release(process->box);
		free_process(process);
		return;
	}
	zygote->on_ended(zygote->arg, how, why); /* first: the words may be of what is freed now */
	ks_zygote_stop(zygote);
}

void ks_zygote_look(struct ks_zygote *zygote, int64_t now_us)
{
	struct process *late = zygote->next ? zygote->next : zygote->now;

	if (!late->ready && now_us - late->made_us > KS_PRELOAD_LIMIT_MS * 1000LL)
		end(late, KS_ZYGOTE_FAILED, "its interpreter does not get ready");
}

/* It takes its turn. The one before reads an end behind what it has been told. */
static void take_over(struct process *process)
{
	struct ks_zygote *zygote = process->zygote;

	(void)shutdown(zygote->now->host->channel.fd, SHUT_WR);
	zygote->now = KS_TAKE_PTR(zygote->next);
}

static void on_word(void *arg, enum ks_park_word word, const char *why)
{
	struct process *process = arg;
	struct ks_zygote *zygote = process->zygote;

	if (word != KS_PARK_READY) {
		end(process, word == KS_PARK_UNABLE ? KS_ZYGOTE_UNABLE : word == KS_PARK_FAILED ? KS_ZYGOTE_FAILED : KS_ZYGOTE_DIED, why);
		return;
	}
	/* a process that a module has started is none that a fork could take along, and would outlive the zygote */
	if (ks_box_others(process->box) > 1) {
		end(process, KS_ZYGOTE_UNABLE, "a module has started a process");
		return;
	}
	process->ready = true;
	if (process == zygote->next)
		take_over(process);
	else
		zygote->on_ready(zygote->arg);
}

static void on_started(void *arg)
{
	(void)arg; /* the interpreter: it says itself when it is ready */
}

static void on_failed(void *arg, const struct ks_error *err)
{
	end(arg, KS_ZYGOTE_DIED, err->text);
}

static void on_ended(void *arg, const struct ks_box_end *how)
{
	struct process *process = arg;
	char why[KS_PARK_REASON];

	(void)how;
	on_word(process, ks_call_park_last_word(process->host, why), why);
}

static void on_gone(void *arg)
{
	(void)arg; /* cannot be: its end comes first, and lets the box go */
}

static void on_box_ready(void *arg)
{
	struct process *process = arg;
	struct ks_error err;

	if (ks_call_park(process->host, process->box, -1, &err) < 0)
		end(process, KS_ZYGOTE_DIED, err.text);
}

static const struct ks_box_ops ops = { on_started, on_failed, on_ended, on_gone, on_box_ready };

static struct process *boot(struct ks_zygote *zygote)
{
	struct process *process = calloc(1, sizeof(*process));
	struct ks_box_limits limits = ks_call_session_limits(zygote->session);
	struct ks_error err;

	if (!process)
		return NULL;
	*process = (struct process){ .zygote = zygote, .made_us = ks_now_us() };
	process->host = ks_call_new_parked(zygote->session, zygote->language, true, on_word, process);
	process->box = process->host ? ks_box_make_zygote(zygote->session->group, &limits, &ops, process, &err) : NULL;
	ks_list_append(&zygote->processes, &process->node);
	if (process->box)
		return process;
	if (process->host)
		ks_call_unpark_done(process->host);
	ks_list_remove(&process->node);
	free(process);
	return NULL;
}

struct ks_zygote *ks_zygote_start(struct ks_session *session, const struct ks_language *language, void (*ready)(void *arg),
				  void (*ended)(void *arg, enum ks_zygote_end how, const char *why), void *arg)
{
	struct ks_zygote *zygote = calloc(1, sizeof(*zygote));

	if (!zygote)
		return NULL;
	*zygote = (struct ks_zygote){ .session = session, .language = language, .on_ready = ready, .on_ended = ended, .arg = arg };
	ks_list_init(&zygote->processes);
	zygote->now = boot(zygote);
	if (!zygote->now)
		free(KS_TAKE_PTR(zygote));
	return zygote;
}

/* ---- forking ---- */

_Static_assert(1 + KS_LEAF_FDS <= KS_JOIN_FDS_MAX, "a cgroup that does not fit would not be entered");

/* The frame has no parts: who forks needs no words. */
static int order(struct process *process, struct ks_box *box, int sock, bool hurry, struct ks_error *err)
{
	KS_AUTOBUF struct ks_buf frame = { 0 };
	int fds[1 + KS_LEAF_FDS], count = ks_box_entrance(box, sock, fds, err);

	if (count < 0)
		return -1;
	ks_frames_write(KS_JOIN_FORK, hurry, NULL, 0, &frame);
	if (frame.failed)
		return ks_fail(err, KS_E_OVERLOADED, "out of memory");
	int rc = ks_send(process->host->channel.fd, frame.data, frame.len, fds, count, MSG_DONTWAIT);
	return rc < 0 ? ks_fail_errno(err, KS_E_OVERLOADED, -rc, "the zygote does not listen") : 0;
}

int ks_zygote_fork(struct ks_zygote *zygote, struct ks_box *box, bool hurry, struct ks_error *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ks_fail_errno(err, KS_E_OVERLOADED, errno, "cannot make a socket for a process of a zygote");
	int rc = order(zygote->now, box, pair[1], hurry, err);
	(void)close(pair[1]);
	if (rc < 0)
		ks_close(&pair[0]);
	else if (++zygote->now->forks >= KS_ZYGOTE_FORKS && !zygote->next)
		zygote->next = boot(zygote);
	return pair[0];
}
