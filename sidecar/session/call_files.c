/* call_files.c: the two looks at the workspace, and what differs between them. In slices: a big tree does not stall the loop. */
#include "session/call_parts.h"

#define FILES_MAX 4096

static void drop_diff(struct ks_call *call)
{
	struct ks_error unused;

	ks_list_remove(&call->diff_chore.node);
	if (call->diff)
		(void)ks_view_count(call->core, -(ssize_t)ks_diff_bytes(call->diff), &unused);
}

/* Of use to this call no longer; the next one makes its own. */
static void drop_snapshots(struct ks_call *call)
{
	ks_view_unref(KS_TAKE_PTR(call->before));
	ks_view_unref(KS_TAKE_PTR(call->after));
}

void ks_call_files_stop(struct ks_call *call)
{
	ks_look_drop(&call->look);
	drop_diff(call);
	ks_diff_free(KS_TAKE_PTR(call->diff));
	drop_snapshots(call);
}

/* Not tracking is not a failed call: the note says why `files` is empty. */
static void give_up(struct ks_call *call, const struct ks_error *err)
{
	ks_notes_add(&call->notes, "files_untracked", "%s", err->text);
	ks_call_files_stop(call);
	ks_call_look_done(call);
}

static void diff_slice(struct ks_chore *chore)
{
	struct ks_call *call = KS_ENTRY(chore, struct ks_call, diff_chore);
	struct ks_error err;
	int rc = ks_diff_step(call->diff, KS_SLICE_US, &err);

	if (rc == 0)
		return;
	if (rc < 0) {
		give_up(call, &err);
		return;
	}
	drop_diff(call);
	call->changes = ks_diff_take(KS_TAKE_PTR(call->diff));
	drop_snapshots(call);
	ks_call_look_done(call);
}

static int start_diff(struct ks_call *call, struct ks_error *err)
{
	if (ks_diff_start(call->session->workspace_fd, call->before->tree, call->after->tree, FILES_MAX, &call->diff, err) < 0)
		return -1;
	return ks_view_count(call->core, (ssize_t)ks_diff_bytes(call->diff), err);
}

static void on_seen(struct ks_look *look, struct ks_view *snapshot, const struct ks_error *err)
{
	struct ks_call *call = KS_ENTRY(look, struct ks_call, look);
	struct ks_error failed;

	if (!snapshot) {
		give_up(call, err);
		return;
	}
	if (look->before) {
		call->before = snapshot;
		ks_call_look_done(call);
		return;
	}
	call->after = snapshot;
	if (call->after == call->before) { /* has no hashes in it, so there is nothing to compare */
		drop_snapshots(call);
		ks_call_look_done(call);
		return;
	}
	if (start_diff(call, &failed) < 0) {
		give_up(call, &failed);
		return;
	}
	call->diff_chore.step = diff_slice;
	ks_core_add_chore(call->core, &call->diff_chore);
	diff_slice(&call->diff_chore); /* most trees are small */
}

void ks_call_look(struct ks_call *call, bool before)
{
	call->look.before = before;
	call->look.seen = on_seen;
	ks_look_ask(&call->session->looks, call->session->workspace_fd, &call->look);
}
