#include "session/spares.h"

#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "session/anonymous.h"
#include "session/call_parts.h"
#include "session/deps.h"
#include "session/zygote.h"

#define FAILURES_MAX 3 /* in a row: this cannot be done here */

/* Those without an interpreter, or those with one of one language. */
struct pool {
	struct ks_list node; /* session->spares */
	struct ks_session *session;
	const struct ks_language *language; /* NULL: none is booted */
	struct ks_list spares;		    /* the oldest first */
	unsigned count, target;
	unsigned fewest; /* that were not taken since the last look */
	unsigned failures;
	int64_t used_us;
	struct ks_zygote *zygote;	    /* what forks them; NULL: there is none, and they boot */
	unsigned zygote_number, zygote_failures; /* how many there were; failures in a row */
	bool boots;			    /* it has been tried, and is not possible here */
	unsigned cold;			    /* calls that did without one, since there was none */
};

struct ks_spare {
	struct ks_list node;
	struct pool *pool;
	struct ks_box *box;
	int64_t made_us;
	bool ready, started, waits; /* for its call; the box has said that all is as it must be; the runner has said so */
	unsigned forked_by; /* number of the zygote; 0: it boots */
	bool held;	    /* its box is ready before the zygote is */
	struct ks_call *parked; /* pipes and channel of its interpreter, as those of a call; NULL: it has none */
	struct ks_call *waiting; /* the call that gets it when it is ready */
};

/* ---- one spare ---- */

static void free_spare(struct ks_spare *spare)
{
	struct pool *pool = spare->pool;
	struct ks_core *core = pool->session->core;

	ks_list_remove(&spare->node);
	if (--pool->count < pool->target)
		ks_spares_soon(core);
	core->spare_count--;
	core->parked_count -= pool->language != NULL;
	if (spare->parked)
		ks_call_unpark_done(spare->parked);
	free(spare);
}

/* It is of no use any more. Who waited for it goes on without. */
static void give_up(struct ks_spare *spare)
{
	struct ks_call *waiting = KS_TAKE_PTR(spare->waiting);

	if (spare->box)
		ks_box_release(spare->box);
	free_spare(spare);
	if (waiting) {
		waiting->spare = NULL;
		ks_call_spare_ready(waiting);
	}
}

/* Its box and what is connected to it are the call's now. -1: they are not, and it is gone. */
static int hand_over(struct ks_spare *spare, struct ks_call *call)
{
	struct ks_error err;

	if (ks_call_adopt(call, spare->box, spare->parked, &err) < 0) {
		ks_log(KS_LOG_INFO, "spare_refused", "%s", err.text);
		give_up(spare);
		return -1;
	}
	spare->box = NULL;
	free_spare(spare);
	return 0;
}

static void become_ready(struct ks_spare *spare)
{
	struct ks_call *waiting = KS_TAKE_PTR(spare->waiting);
	struct ks_session *session = spare->pool->session;

	spare->ready = true;
	spare->pool->failures = 0;
	if (spare->forked_by)
		spare->pool->zygote_failures = 0;
	if (session->state == KS_SESSION_OPENING)
		ks_session_preloaded(session, NULL);
	if (!waiting)
		return;
	waiting->spare = NULL;
	(void)hand_over(spare, waiting);
	ks_call_spare_ready(waiting);
}

/* ---- what forks them ---- */

/* One by one from the beginning: what becomes of one may take others away. */
static struct ks_spare *held_one(struct pool *pool)
{
	for (struct ks_list *n = pool->spares.next; n != &pool->spares; n = n->next)
		if (KS_ENTRY(n, struct ks_spare, node)->held)
			return KS_ENTRY(n, struct ks_spare, node);
	return NULL;
}

/* They have waited for it. Calls go on without. */
static void give_up_held(struct pool *pool)
{
	for (struct ks_spare *spare; (spare = held_one(pool));)
		give_up(spare);
}

static void drop_zygote(struct pool *pool)
{
	struct ks_core *core = pool->session->core;

	if (!pool->zygote)
		return;
	core->spare_count--;
	core->parked_count--;
	ks_zygote_stop(KS_TAKE_PTR(pool->zygote));
	give_up_held(pool);
}

/* Something is wrong with it, or with what it makes: if that does not change with another one, interpreters boot. */
static void forsake(struct pool *pool, unsigned number)
{
	if (!pool->zygote || number != pool->zygote_number)
		return;
	pool->zygote_failures++;
	pool->boots |= pool->zygote_failures >= FAILURES_MAX;
	drop_zygote(pool);
}

/* ---- its end ---- */

static void preload_failed(struct ks_session *session, const char *why)
{
	struct ks_error err;

	(void)ks_fail_at(&err, KS_E_PRELOAD_FAILED, "/preload", "%s", why);
	(void)ks_error_hint(&err, "the modules must be in the image, or in the packages of the workspace's former session/setup");
	ks_session_preloaded(session, &err);
}

static void has_died(struct ks_spare *spare, const char *why)
{
	struct ks_session *session = spare->pool->session;
	const unsigned number = spare->held ? spare->pool->zygote_number : spare->forked_by;

	ks_log(KS_LOG_INFO, "spare_died", "%s", why);
	spare->held = false;
	if (!spare->ready && number)
		forsake(spare->pool, number);
	else
		spare->pool->failures += !spare->ready;
	if (session->state != KS_SESSION_OPENING || session->preload.count == 0) {
		give_up(spare);
		return;
	}
	preload_failed(session, why); /* first: the words may be the spare's */
}

/* Its init has found that it has no power, and set its limits: it may be as quick as its interpreter, which says the other word. */
static void on_started(void *arg)
{
	struct ks_spare *spare = arg;

	spare->started = true;
	if (spare->waits)
		become_ready(spare);
}

static void on_failed(void *arg, const struct ks_error *err)
{
	has_died(arg, err->text);
}

static void on_ended(void *arg, const struct ks_box_end *end)
{
	struct ks_spare *spare = arg;
	char why[KS_PARK_REASON];

	(void)end;
	(void)ks_call_park_last_word(spare->parked, why);
	has_died(spare, why);
}

static void on_gone(void *arg)
{
	(void)arg; /* cannot be: its end comes first, and gives it up */
}

/* A zygote forks it, or it boots. */
static void get_interpreter(struct ks_spare *spare)
{
	struct ks_zygote *zygote = spare->pool->zygote;
	struct ks_error err;

	spare->held = zygote && !ks_zygote_is_ready(zygote);
	if (spare->held)
		return;
	KS_AUTOCLOSE int join = zygote ? ks_zygote_fork(zygote, spare->box, spare->waiting, &err) : -1;
	spare->forked_by = join < 0 ? 0 : spare->pool->zygote_number;
	if (ks_call_park(spare->parked, spare->box, join, &err) < 0)
		has_died(spare, err.text);
}

static void on_ready(void *arg)
{
	struct ks_spare *spare = arg;

	if (spare->parked)
		get_interpreter(spare);
	else
		become_ready(spare);
}

static const struct ks_box_ops spare_ops = { on_started, on_failed, on_ended, on_gone, on_ready };

/* The runner waits for the code. */
static void on_parked(void *arg, enum ks_park_word word, const char *why)
{
	struct ks_spare *spare = arg;

	if (word != KS_PARK_READY)
		has_died(spare, why);
	else if (spare->started)
		become_ready(spare);
	else
		spare->waits = true;
}

static struct ks_spare *make(struct pool *pool)
{
	struct ks_session *session = pool->session;
	struct ks_box_limits limits = ks_call_session_limits(session);
	struct ks_spare *spare = calloc(1, sizeof(*spare));
	struct ks_error err;

	if (!spare)
		return NULL;
	*spare = (struct ks_spare){ .pool = pool, .made_us = ks_now_us() };
	limits.any_cpus = true;
	ks_list_append(&pool->spares, &spare->node);
	pool->count++;
	session->core->spare_count++;
	session->core->parked_count += pool->language != NULL;
	spare->parked = pool->language ? ks_call_new_parked(session, pool->language, false, on_parked, spare) : NULL;
	if (!pool->language || spare->parked)
		spare->box = ks_box_make(session->group, &limits, &spare_ops, spare, &err);
	if (spare->box)
		return spare;
	pool->failures++;
	free_spare(spare);
	return NULL;
}

/* ---- their zygote ---- */

static void on_zygote_ready(void *arg)
{
	struct pool *pool = arg;

	pool->cold = 0;
	for (struct ks_spare *spare; pool->zygote && ks_zygote_is_ready(pool->zygote) && (spare = held_one(pool));)
		get_interpreter(spare);
	ks_spares_soon(pool->session->core);
	if (pool->session->state == KS_SESSION_OPENING && !make(pool))
		preload_failed(pool->session, "no box can be made for its interpreter");
}

static void on_zygote_ended(void *arg, enum ks_zygote_end how, const char *why)
{
	struct pool *pool = arg;
	struct ks_session *session = pool->session;

	pool->zygote = NULL;
	pool->zygote_failures++;
	pool->boots |= how != KS_ZYGOTE_DIED || pool->zygote_failures >= FAILURES_MAX;
	session->core->spare_count--;
	session->core->parked_count--;
	give_up_held(pool);
	if (how == KS_ZYGOTE_UNABLE && session->preload.count > 0)
		ks_notes_add(&session->notes, "preload_not_shared", "each interpreter imports the modules of preload for itself: %s", why);
	ks_spares_soon(session->core);
	if (session->state == KS_SESSION_OPENING && session->preload.count > 0 && (how == KS_ZYGOTE_FAILED || !make(pool)))
		preload_failed(session, why); /* last: the session may be gone then */
}

static bool make_zygote(struct pool *pool)
{
	struct ks_core *core = pool->session->core;

	pool->zygote = ks_zygote_start(pool->session, pool->language, on_zygote_ready, on_zygote_ended, pool);
	pool->boots = !pool->zygote;
	pool->zygote_number++;
	core->spare_count += pool->zygote != NULL;
	core->parked_count += pool->zygote != NULL;
	return pool->zygote;
}

static bool wants_zygote(const struct pool *pool)
{
	return pool->language && !pool->boots && !pool->zygote && ks_zygote_possible(pool->session, pool->language);
}

static bool can_fork(const struct pool *pool)
{
	return pool->zygote && ks_zygote_is_ready(pool->zygote);
}

/* ---- how many ---- */

static bool is_preloaded(const struct pool *pool)
{
	return pool->language && pool->session->preload.count > 0 && strcmp(pool->language->api.name, "python") == 0;
}

static unsigned floor_of(const struct pool *pool)
{
	const unsigned asked = (unsigned)pool->session->prewarm;

	if (asked == 0 && is_preloaded(pool))
		return 1; /* it took long to make it */
	return pool->language && asked > KS_PARKED_FLOOR ? KS_PARKED_FLOOR : asked;
}

static unsigned ceiling_of(const struct pool *pool)
{
	unsigned most = pool->language ? KS_PARKED_MAX : KS_SPARES_MAX;

	return most < floor_of(pool) ? floor_of(pool) : most;
}

static struct pool *pool_of(struct ks_session *session, const struct ks_language *language)
{
	for (struct ks_list *n = session->spares.next; n != &session->spares; n = n->next)
		if (KS_ENTRY(n, struct pool, node)->language == language)
			return KS_ENTRY(n, struct pool, node);
	struct pool *pool = calloc(1, sizeof(*pool));
	if (!pool)
		abort();
	*pool = (struct pool){ .session = session, .language = language };
	pool->target = floor_of(pool);
	ks_list_init(&pool->spares);
	ks_list_append(&session->spares, &pool->node);
	return pool;
}

static bool has_room(const struct pool *pool)
{
	const struct ks_session *session = pool->session;

	if (session->throwaway && !session->anonymous.waits)
		return false; /* it has had its call */
	return session->state == KS_SESSION_OPEN && ks_list_empty(&session->gate.asked) && pool->failures < FAILURES_MAX &&
	       session->core->spare_count < KS_SPARES_TOTAL && (!pool->language || session->core->parked_count < KS_PARKED_TOTAL) &&
	       ks_engine_boxes(session->core->engine) < KS_SPARES_BACKLOG && !session->core->closing;
}

static bool may_grow(const struct pool *pool)
{
	return pool->count < pool->target && has_room(pool);
}

/* A boot takes about as long as that of the zygote, and as much of a processor as several forks: so one call for each processor boots,
 * and the others wait for the zygote rather than for a processor. */
static bool better_waits(struct pool *pool)
{
	if (can_fork(pool) || !(pool->zygote || (wants_zygote(pool) && has_room(pool))) || ++pool->cold <= uv_available_parallelism())
		return false;
	return pool->zygote || make_zygote(pool);
}

/* A pool's zygote first: what it needs then is forked. */
static int make_missing(struct pool *pool, int most)
{
	int made = 0;

	if (may_grow(pool) && wants_zygote(pool))
		made += make_zygote(pool);
	while (made < most && may_grow(pool) && (!pool->zygote || can_fork(pool)) && make(pool))
		made++;
	return made;
}

static void on_refill(uv_timer_t *timer)
{
	struct ks_core *core = timer->data;
	int left = KS_SPARES_BURST;

	core->spares_low = false;
	if (ks_anonymous_refill(core))
		ks_spares_soon(core);
	for (struct ks_list *s = core->sessions.next; s != &core->sessions; s = s->next) {
		struct ks_session *session = KS_ENTRY(s, struct ks_session, node);
		for (struct ks_list *n = session->spares.next; n != &session->spares; n = n->next) {
			struct pool *pool = KS_ENTRY(n, struct pool, node);
			left -= make_missing(pool, left);
			if (left == 0) {
				(void)uv_timer_start(timer, on_refill, KS_SPARES_PAUSE_MS, 0);
				return;
			}
		}
	}
}

void ks_spares_soon(struct ks_core *core)
{
	if (!core->closing && !uv_is_active((uv_handle_t *)&core->spare_timer))
		(void)uv_timer_start(&core->spare_timer, on_refill, KS_SPARES_DELAY_MS, 0);
}

void ks_spares_now(struct ks_core *core)
{
	if (core->spares_low && uv_is_active((uv_handle_t *)&core->spare_timer))
		(void)uv_timer_start(&core->spare_timer, on_refill, 0, 0);
}

static void missed(struct pool *pool)
{
	unsigned more = pool->target ? 2 * pool->target : 1;

	pool->session->core->spares_low = true;
	pool->target = more < ceiling_of(pool) ? more : ceiling_of(pool);
}

static void shrink(struct pool *pool)
{
	while (pool->count > pool->target) {
		struct ks_spare *spare = KS_ENTRY(pool->spares.next, struct ks_spare, node);
		if (spare->waiting)
			return;
		give_up(spare);
	}
}

/* One that imports, and does not come to an end. */
static void reject_stuck(struct pool *pool, int64_t now_us)
{
	if (pool->zygote)
		ks_zygote_look(pool->zygote, now_us);
	for (struct ks_list *n = pool->spares.next; n != &pool->spares; n = n->next) {
		struct ks_spare *spare = KS_ENTRY(n, struct ks_spare, node);
		if (!spare->ready && now_us - spare->made_us > (spare->forked_by ? KS_BEGIN_LIMIT_MS : KS_PRELOAD_LIMIT_MS) * 1000LL) {
			has_died(spare, "its interpreter does not get ready");
			return;
		}
	}
}

void ks_spares_idle(struct ks_core *core, int64_t now_us)
{
	for (struct ks_list *s = core->sessions.next; s != &core->sessions; s = s->next)
		for (struct ks_list *n = KS_ENTRY(s, struct ks_session, node)->spares.next;
		     n != &KS_ENTRY(s, struct ks_session, node)->spares; n = n->next) {
			struct pool *pool = KS_ENTRY(n, struct pool, node);
			const unsigned least = floor_of(pool), unused = pool->fewest;
			pool->fewest = pool->count;
			reject_stuck(pool, now_us);
			if (now_us - pool->used_us > KS_SPARES_IDLE_MS * 1000LL) {
				pool->target = least;
				pool->failures = 0; /* it may have been a busy machine */
			} else if (unused > 1) /* one lies there for the next call */
				pool->target = pool->target - unused / 2 > least ? pool->target - unused / 2 : least;
			shrink(pool);
			if (pool->target == 0)
				drop_zygote(pool);
		}
}

/* ---- taking one ---- */

static struct ks_spare *best(struct pool *pool)
{
	struct ks_spare *early = NULL;

	for (struct ks_list *n = pool->spares.next; n != &pool->spares; n = n->next) {
		struct ks_spare *spare = KS_ENTRY(n, struct ks_spare, node);
		if (spare->ready)
			return spare;
		if (!early && !spare->waiting)
			early = spare;
	}
	return early;
}

static struct ks_spare *look_for(struct pool *pool, bool make_one)
{
	struct ks_spare *spare = best(pool);

	pool->used_us = ks_now_us();
	if (!spare || !spare->ready)
		missed(pool);
	if (!spare && make_one && pool->failures < FAILURES_MAX)
		spare = make(pool);
	ks_spares_soon(pool->session->core);
	return spare;
}

static void note_count(struct pool *pool)
{
	if (pool->count < pool->fewest)
		pool->fewest = pool->count;
	pool->session->core->spares_low |= 2 * pool->count <= pool->target;
}

enum ks_spare_answer ks_spares_take(struct ks_call *call)
{
	struct ks_session *session = call->session;
	const bool forced = session->start == KS_START_ZYGOTE;

	if (session->start == KS_START_COLD || session->start == KS_START_TEMPLATE || !session->group)
		return KS_SPARE_NONE;
	if (session->core->one_call && session->start == KS_START_AUTO && session->preload.count == 0)
		return KS_SPARE_NONE;
	if (session->start != KS_START_SPARE && ks_call_can_park(call)) {
		struct pool *pool = pool_of(session, call->language);
		struct ks_spare *spare = look_for(pool, better_waits(pool) || forced || can_fork(pool));
		if (spare && !spare->ready) {
			spare->waiting = call;
			call->spare = spare;
			return KS_SPARE_WAIT;
		}
		if (spare && hand_over(spare, call) == 0) {
			note_count(pool);
			return KS_SPARE_TAKEN;
		}
	}
	struct pool *pool = pool_of(session, NULL);
	struct ks_spare *spare = look_for(pool, false);
	const bool ready = spare && spare->ready;
	if (!spare || hand_over(spare, call) < 0)
		return KS_SPARE_NONE;
	note_count(pool);
	return ready ? KS_SPARE_TAKEN : KS_SPARE_EARLY;
}

void ks_spare_leave(struct ks_call *call)
{
	struct ks_spare *spare = KS_TAKE_PTR(call->spare);

	if (spare)
		spare->waiting = NULL;
}

void ks_spare_reject(struct ks_call *call)
{
	has_died(call->spare, "its interpreter does not get ready");
}

/* ---- life ---- */

void ks_spares_init(struct ks_session *session)
{
	ks_list_init(&session->spares);
}

void ks_spares_begin(struct ks_session *session)
{
	if (session->prewarm == 0)
		return;
	(void)pool_of(session, NULL);
	const struct ks_language *usual = ks_plugins_find_language(session->core->plugins, "python");
	if (session->start == KS_START_ZYGOTE && usual)
		(void)pool_of(session, usual);
	ks_spares_soon(session->core);
}

void ks_spares_preload(struct ks_session *session)
{
	const struct ks_language *python = ks_plugins_find_language(session->core->plugins, "python");

	struct pool *pool = python ? pool_of(session, python) : NULL;
	if (python && !session->throwaway && !ks_zygote_possible(session, python))
		ks_notes_add(&session->notes, "preload_not_shared", "each interpreter imports the modules of preload for itself: "
			     "kept capabilities, apparmor and securityProfile untrusted allow no zygote");
	if (!pool || (!(wants_zygote(pool) && make_zygote(pool)) && !make(pool)))
		preload_failed(
			session,
			"this session cannot boot its python ahead: it is not in the image, or named in interpreters, or its packages can "
			"be written, or env has variables that it reads at its start");
}

void ks_spares_expect(struct ks_session *session, const struct ks_language *language)
{
	struct pool *pool = pool_of(session, language && (language->api.flags & KERN_CAN_ZYGOTE) ? language : NULL);

	pool->target = 1;
	pool->used_us = ks_now_us();
	ks_spares_soon(session->core);
}

void ks_spares_drop(struct ks_session *session)
{
	for (struct ks_list *n = session->spares.next; n != &session->spares; n = n->next) {
		struct pool *pool = KS_ENTRY(n, struct pool, node);
		while (!ks_list_empty(&pool->spares))
			give_up(KS_ENTRY(pool->spares.next, struct ks_spare, node));
		drop_zygote(pool);
		pool->failures = pool->zygote_failures = pool->cold = 0; /* what is different then may be what was wrong */
		pool->boots = false;
	}
}

void ks_spares_free(struct ks_session *session)
{
	while (!ks_list_empty(&session->spares)) {
		struct pool *pool = KS_ENTRY(session->spares.next, struct pool, node);
		while (!ks_list_empty(&pool->spares)) {
			struct ks_spare *spare = KS_ENTRY(pool->spares.next, struct ks_spare, node);
			spare->box = NULL; /* the sidecar ends, and its engine has ended before: nobody reports any more */
			free_spare(spare);
		}
		if (pool->zygote)
			ks_zygote_forget(pool->zygote);
		ks_list_remove(&pool->node);
		free(pool);
	}
}
