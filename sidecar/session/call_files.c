/* call_files.c: the two looks at the workspace, and what differs between them. In slices: a big tree does not stall the loop. */
#include "session/call.h"

#define FILES_MAX 4096

static void finish_look(struct ks_call *call)
{
	if (call->files_busy) {
		call->files_busy = false;
		ks_list_remove(&call->files_chore.node);
	}
	ks_call_look_done(call);
}

/* Not tracking is not a failed call: the note says why `files` is empty. */
static void give_up(struct ks_call *call, const struct ks_error *err)
{
	ks_call_add_note(call, "files_untracked", "%s", err->text);
	ks_walk_free(call->walk);
	call->walk = NULL;
	ks_diff_free(call->diff);
	call->diff = NULL;
	ks_tree_free(call->before);
	call->before = NULL;
}

/* True when there is more to do. */
static bool step(struct ks_call *call)
{
	struct ks_error err;
	int rc;

	if (call->walk) {
		rc = ks_walk_step(call->walk, KS_SLICE_US, &err);
		if (rc == 0)
			return true;
		if (rc < 0) {
			give_up(call, &err);
			return false;
		}
		struct ks_tree *tree = ks_walk_take(KS_TAKE_PTR(call->walk));
		if (!call->before) {
			call->before = tree;
			return false;
		}
		call->after = tree;
		if (ks_diff_start(call->session->workspace_fd, call->before, call->after, FILES_MAX, &call->diff, &err) < 0) {
			give_up(call, &err);
			return false;
		}
	}
	rc = ks_diff_step(call->diff, KS_SLICE_US, &err);
	if (rc == 0)
		return true;
	if (rc < 0)
		give_up(call, &err);
	else
		call->changes = ks_diff_take(KS_TAKE_PTR(call->diff));
	return false;
}

static void on_slice(struct ks_chore *chore)
{
	struct ks_call *call = KS_ENTRY(chore, struct ks_call, files_chore);

	if (!step(call))
		finish_look(call);
}

void ks_call_look(struct ks_call *call, bool before)
{
	struct ks_error err;

	if (ks_walk_start(call->session->workspace_fd, before, &call->walk, &err) < 0) {
		give_up(call, &err);
		finish_look(call);
		return;
	}
	if (!step(call)) { /* most trees are small */
		finish_look(call);
		return;
	}
	call->files_busy = true;
	call->files_chore.step = on_slice;
	ks_core_add_chore(call->core, &call->files_chore);
}

void ks_call_files_free(struct ks_call *call)
{
	if (call->files_busy)
		ks_list_remove(&call->files_chore.node);
	call->files_busy = false;
	ks_walk_free(call->walk);
	ks_diff_free(call->diff);
	ks_tree_free(call->before);
	ks_tree_free(call->after);
	call->walk = NULL;
	call->diff = NULL;
	call->before = call->after = NULL;
	ks_changes_free(&call->changes);
}
