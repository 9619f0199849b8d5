#include "session/looks.h"

static void on_slice(struct ks_chore *chore);

int ks_view_count(struct ks_core *core, ssize_t more, struct ks_error *err)
{
	core->snapshot_bytes += (size_t)more;
	if (more <= 0 || core->snapshot_bytes <= KS_VIEW_BYTES)
		return 0;
	ks_fail(err, KS_E_LIMIT, "too many files to track at once: more than %zu MiB for all calls that run", KS_VIEW_BYTES >> 20);
	return ks_error_hint(err, "run fewer calls at once in large workspaces, or set trackFiles to false");
}

void ks_view_unref(struct ks_view *snapshot)
{
	struct ks_error unused;

	if (!snapshot || --snapshot->refs > 0)
		return;
	(void)ks_view_count(snapshot->core, -(ssize_t)snapshot->bytes, &unused);
	ks_tree_free(snapshot->tree);
	free(snapshot);
}

static int recount(struct ks_view *snapshot, size_t bytes, struct ks_error *err)
{
	ssize_t more = (ssize_t)bytes - (ssize_t)snapshot->bytes;

	snapshot->bytes = bytes;
	return ks_view_count(snapshot->core, more, err);
}

/* 1 done, 0 more to do, -1 failed. */
static int step(struct ks_looks *looks, struct ks_error *err)
{
	struct ks_view *snapshot = looks->snapshot;
	int rc = ks_walk_step(looks->walk, KS_SLICE_US, err);

	if (rc > 0) {
		snapshot->tree = ks_walk_take(KS_TAKE_PTR(looks->walk));
		return recount(snapshot, ks_tree_bytes(snapshot->tree), err) < 0 ? -1 : 1;
	}
	return rc == 0 ? recount(snapshot, ks_walk_bytes(looks->walk), err) : rc;
}

/* For those that wait in `now`. */
static int begin(struct ks_looks *looks, struct ks_error *err)
{
	bool before = false;

	for (struct ks_list *n = looks->now.next; n != &looks->now; n = n->next)
		before |= KS_ENTRY(n, struct ks_look, node)->before;
	looks->snapshot = calloc(1, sizeof(*looks->snapshot));
	if (!looks->snapshot)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	*looks->snapshot = (struct ks_view){ .core = looks->core, .refs = 1 };
	looks->core->counters.walks++;
	return ks_walk_start(looks->workspace_fd, before, &looks->walk, err);
}

/* For the next look: most find what the last one found. Small, so it is not counted, and of no call. */
static void keep(struct ks_looks *looks, struct ks_view *snapshot)
{
	struct ks_error unused;

	ks_view_unref(KS_TAKE_PTR(looks->last));
	if (!ks_tree_is_steady(snapshot->tree))
		return;
	(void)recount(snapshot, 0, &unused);
	snapshot->refs++;
	looks->last = snapshot;
}

static bool is_still(struct ks_looks *looks, const struct ks_look *look)
{
	if (!looks->last || !ks_tree_still(looks->last->tree, looks->workspace_fd, look->before))
		return false;
	looks->core->counters.walks++;
	return true;
}

/* The walk has ended. Telling them comes last: the session may be gone behind it. */
static void finish(struct ks_looks *looks, bool failed, const struct ks_error *why)
{
	struct ks_view *snapshot = KS_TAKE_PTR(looks->snapshot);
	struct ks_error err = failed ? *why : (struct ks_error){ 0 };
	struct ks_list told;

	ks_walk_free(KS_TAKE_PTR(looks->walk));
	ks_list_remove(&looks->chore.node);
	if (!failed)
		keep(looks, snapshot);
	ks_list_init(&told);
	ks_list_move_all(&looks->now, &told);
	ks_list_move_all(&looks->next, &looks->now);
	if (!ks_list_empty(&looks->now))
		ks_core_add_chore(looks->core, &looks->chore); /* begins in its first slice: who is told now may still join */
	while (!ks_list_empty(&told)) {
		struct ks_look *look = KS_ENTRY(told.next, struct ks_look, node);
		ks_list_remove(&look->node);
		look->looks = NULL;
		if (!failed)
			snapshot->refs++;
		look->seen(look, failed ? NULL : snapshot, &err);
	}
	ks_view_unref(snapshot);
}

static void slice(struct ks_looks *looks)
{
	struct ks_error err;
	int rc = looks->walk ? 0 : begin(looks, &err);

	if (rc == 0)
		rc = step(looks, &err);
	if (rc != 0)
		finish(looks, rc < 0, &err);
}

static void on_slice(struct ks_chore *chore)
{
	slice(KS_ENTRY(chore, struct ks_looks, chore));
}

void ks_looks_init(struct ks_looks *looks, struct ks_core *core)
{
	*looks = (struct ks_looks){ .core = core, .chore.step = on_slice };
	ks_list_init(&looks->now);
	ks_list_init(&looks->next);
	ks_list_init(&looks->chore.node);
}

void ks_look_ask(struct ks_looks *looks, int workspace_fd, struct ks_look *look)
{
	look->looks = looks;
	looks->workspace_fd = workspace_fd;
	if (looks->walk) { /* what it has seen may have changed since */
		ks_list_append(&looks->next, &look->node);
		return;
	}
	bool first = ks_list_empty(&looks->now);
	if (first && is_still(looks, look)) {
		look->looks = NULL;
		looks->last->refs++;
		look->seen(look, looks->last, NULL);
		return;
	}
	ks_list_append(&looks->now, &look->node);
	if (!first)
		return;
	ks_core_add_chore(looks->core, &looks->chore);
	slice(looks); /* most trees are small */
}

static void stop_walk(struct ks_looks *looks)
{
	ks_walk_free(KS_TAKE_PTR(looks->walk));
	ks_view_unref(KS_TAKE_PTR(looks->snapshot));
}

void ks_look_drop(struct ks_look *look)
{
	struct ks_looks *looks = KS_TAKE_PTR(look->looks);

	if (!looks)
		return;
	ks_list_remove(&look->node);
	if (!ks_list_empty(&looks->now))
		return;
	stop_walk(looks);
	ks_list_move_all(&looks->next, &looks->now);
	if (ks_list_empty(&looks->now))
		ks_list_remove(&looks->chore.node);
}

void ks_looks_free(struct ks_looks *looks)
{
	stop_walk(looks);
	ks_view_unref(KS_TAKE_PTR(looks->last));
	ks_list_remove(&looks->chore.node);
}
