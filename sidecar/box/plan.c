#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf_common.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "idmap.h"
#include "sys.h"

static const char *const kind_names[] = { "dir", "file", "symlink", "bind", "tmpfs", "proc", "devpts", "mask" };

const char *ks_step_name(uint32_t kind)
{
	return kind < KS_COUNT(kind_names) ? kind_names[kind] : "?";
}

void ks_plan_init(struct ks_plan *plan, bool is_root)
{
	memset(plan, 0, sizeof(*plan));
	plan->head.magic = KS_PLAN_MAGIC;
	plan->head.is_root = is_root;
	ks_buf_char(&plan->strings, '\0'); /* offset 0 is the empty string */
}

void ks_plan_free(struct ks_plan *plan)
{
	ks_close_all(plan->fds, plan->nfds);
	plan->nfds = 0;
	ks_buf_free(&plan->strings);
}

/* Splits the range around `inside`, which becomes `owner`; an empty part has count 0 and is not written. */
static void map_around(struct ks_id_range map[4], uint32_t inside, uint32_t owner)
{
	map[0] = (struct ks_id_range){ inside, owner, 1 };
	map[1] = (struct ks_id_range){ 0, KS_RANGE_START, inside };
	map[2] = (struct ks_id_range){ inside + 1, KS_RANGE_START + inside + 1, KS_RANGE_COUNT - inside - 1 };
}

void ks_plan_map_ids(struct ks_plan *plan, uid_t box_uid, gid_t box_gid, uid_t owner_uid, gid_t owner_gid)
{
	plan->head.box_uid = box_uid;
	plan->head.box_gid = box_gid;
	if (plan->head.is_root) {
		map_around(plan->head.uid_map, box_uid, owner_uid);
		map_around(plan->head.gid_map, box_gid, owner_gid);
		plan->head.map_count = 3;
		return;
	}
	/* The launcher's namespace already maps 1000 to the caller. */
	plan->head.uid_map[0] = (struct ks_id_range){ box_uid, KS_BOX_UID, 1 };
	plan->head.gid_map[0] = (struct ks_id_range){ box_gid, KS_BOX_UID, 1 };
	plan->head.map_count = 1;
}

static uint32_t add_string(struct ks_plan *plan, const char *text)
{
	size_t at = plan->strings.len;

	ks_buf_add(&plan->strings, text, strlen(text) + 1);
	return (uint32_t)at;
}

static struct ks_step *add_step(struct ks_plan *plan, enum ks_step_kind kind, unsigned flags, const char *target,
				struct ks_error *err)
{
	if (plan->head.step_count == KS_PLAN_STEPS || plan->strings.len > KS_PLAN_MAX / 2) {
		(void)ks_fail(err, KS_E_LIMIT, "a session may have at most %d mounts and files", KS_PLAN_STEPS);
		return NULL;
	}
	struct ks_step *step = &plan->steps[plan->head.step_count++];
	*step = (struct ks_step){ .kind = kind, .flags = flags, .fd = -1 };
	step->target = add_string(plan, target);
	return step;
}

int ks_plan_dir(struct ks_plan *plan, const char *target, unsigned mode, struct ks_error *err)
{
	struct ks_step *step = add_step(plan, KS_STEP_DIR, 0, target, err);

	if (step)
		step->mode = mode;
	return step ? 0 : -1;
}

int ks_plan_place(struct ks_plan *plan, const char *target, struct ks_error *err)
{
	struct ks_step *step = add_step(plan, KS_STEP_DIR, KS_STEP_OPTIONAL, target, err);

	if (step)
		step->mode = 0755;
	return step ? 0 : -1;
}

int ks_plan_file(struct ks_plan *plan, const char *target, const char *text, struct ks_error *err)
{
	struct ks_step *step = add_step(plan, KS_STEP_FILE, 0, target, err);

	if (!step)
		return -1;
	step->text = add_string(plan, text);
	step->text_len = (uint32_t)strlen(text);
	return 0;
}

int ks_plan_symlink(struct ks_plan *plan, const char *target, const char *to, struct ks_error *err)
{
	struct ks_step *step = add_step(plan, KS_STEP_SYMLINK, 0, target, err);

	if (step)
		step->text = add_string(plan, to);
	return step ? 0 : -1;
}

static int add_tmpfs(struct ks_plan *plan, unsigned flags, const char *target, uint64_t size, uint64_t inodes, unsigned mode,
		     struct ks_error *err)
{
	struct ks_step *step = add_step(plan, KS_STEP_TMPFS, flags, target, err);

	if (!step)
		return -1;
	step->size = size;
	step->inodes = inodes;
	step->mode = mode;
	return 0;
}

int ks_plan_tmpfs(struct ks_plan *plan, const char *target, uint64_t size, uint64_t inodes, unsigned mode,
		  struct ks_error *err)
{
	return add_tmpfs(plan, KS_STEP_BOX, target, size, inodes, mode, err);
}

int ks_plan_memory(struct ks_plan *plan, const char *target, uint64_t size, uint64_t inodes, struct ks_error *err)
{
	return add_tmpfs(plan, 0, target, size, inodes, 0700, err);
}

int ks_plan_sent(struct ks_plan *plan, int sock, const char *target, struct ks_error *err)
{
	if (plan->nfds == KS_MSG_FDS - 1)
		return ks_fail(err, KS_E_LIMIT, "a session may have at most %d mounts", KS_MSG_FDS - 1);
	struct ks_step *step = add_step(plan, KS_STEP_BIND, KS_STEP_SENT, target, err);
	if (!step)
		return -1;
	int copy = fcntl(sock, F_DUPFD_CLOEXEC, 3);
	if (copy < 0)
		return ks_fail_errno(err, KS_E_START_FAILED, errno, "cannot hand on the workspace");
	step->source = step->target;
	step->fd = plan->nfds;
	plan->fds[plan->nfds++] = copy;
	return 0;
}

int ks_plan_proc(struct ks_plan *plan, struct ks_error *err)
{
	return add_step(plan, KS_STEP_PROC, KS_STEP_BOX, "/proc", err) ? 0 : -1;
}

int ks_plan_devpts(struct ks_plan *plan, struct ks_error *err)
{
	return add_step(plan, KS_STEP_DEVPTS, KS_STEP_BOX, "/dev/pts", err) ? 0 : -1;
}

int ks_plan_mask(struct ks_plan *plan, const char *target, struct ks_error *err)
{
	return add_step(plan, KS_STEP_MASK, KS_STEP_BOX | KS_STEP_OPTIONAL, target, err) ? 0 : -1;
}

int ks_plan_set_hostname(struct ks_plan *plan, const char *name, struct ks_error *err)
{
	plan->head.hostname = add_string(plan, name);
	return plan->strings.failed ? ks_fail(err, KS_E_INTERNAL, "out of memory") : 0;
}

int ks_plan_set_apparmor(struct ks_plan *plan, const char *profile, struct ks_error *err)
{
	plan->head.apparmor = add_string(plan, profile);
	return plan->strings.failed ? ks_fail(err, KS_E_INTERNAL, "out of memory") : 0;
}

int ks_plan_set_filters(struct ks_plan *plan, const struct ks_filter filters[2], struct ks_error *err)
{
	for (int i = 0; i < 2; i++) {
		while (plan->strings.len % 8 && !plan->strings.failed)
			ks_buf_char(&plan->strings, '\0');
		plan->head.filter[i] = (uint32_t)plan->strings.len;
		plan->head.filter_count[i] = filters[i].count;
		ks_buf_add(&plan->strings, filters[i].code, filters[i].count * sizeof(*filters[i].code));
	}
	ks_buf_char(&plan->strings, '\0'); /* the strings end with one */
	return plan->strings.failed ? ks_fail(err, KS_E_INTERNAL, "out of memory") : 0;
}

int ks_plan_set_fail_step(struct ks_plan *plan, const char *name, struct ks_error *err)
{
	plan->head.fail_step = add_string(plan, name);
	return plan->strings.failed ? ks_fail(err, KS_E_INTERNAL, "out of memory") : 0;
}

/* Real root clones the tree here and now, out of its own mount namespace: what happens to the path afterwards does not matter. */
static int clone_tree(struct ks_plan *plan, int fd, const char *path, int idmap, struct ks_error *err)
{
	int tree = ks_clone_tree(fd, path, idmap, err);

	if (tree < 0)
		return -1;
	plan->fds[plan->nfds] = tree;
	return plan->nfds++;
}

int ks_plan_bind(struct ks_plan *plan, int fd, const char *path, const char *target, unsigned flags, int idmap,
		 struct ks_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return ks_fail_errno(err, KS_E_START_FAILED, errno, "%s", path);
	if (plan->nfds == KS_MSG_FDS - 1)
		return ks_fail(err, KS_E_LIMIT, "a session may have at most %d mounts", KS_MSG_FDS - 1);
	struct ks_step *step = add_step(plan, KS_STEP_BIND, flags, target, err);
	if (!step)
		return -1;
	step->source = add_string(plan, path);
	step->device = (uint64_t)st.st_dev;
	step->inode = (uint64_t)st.st_ino;
	if (!plan->head.is_root)
		return 0;
	int index = clone_tree(plan, fd, path, idmap, err);
	step->fd = index;
	return index < 0 ? -1 : 0;
}

int ks_plan_cover(struct ks_plan *plan, const char *source, const char *target, struct ks_error *err)
{
	struct ks_step *step = add_step(plan, KS_STEP_BIND, KS_STEP_RDONLY | KS_STEP_COVER, target, err);

	if (step)
		step->source = add_string(plan, source);
	return step ? 0 : -1;
}

int ks_plan_within(struct ks_plan *plan, const char *source, const struct stat *identity, const char *target, unsigned flags,
		   struct ks_error *err)
{
	struct ks_step *step = add_step(plan, KS_STEP_BIND, flags | KS_STEP_COVER, target, err);

	if (!step)
		return -1;
	step->source = add_string(plan, source);
	step->device = (uint64_t)identity->st_dev;
	step->inode = (uint64_t)identity->st_ino;
	return 0;
}

int ks_plan_again(struct ks_plan *plan, const char *source, const char *target, struct ks_error *err)
{
	struct ks_step *step = add_step(plan, KS_STEP_BIND, KS_STEP_BOX | KS_STEP_AGAIN, target, err);

	if (step)
		step->source = add_string(plan, source);
	return step ? 0 : -1;
}

static void print_step(const struct ks_plan *plan, const struct ks_step *step, struct ks_buf *out)
{
	const char *strings = plan->strings.data, *target = strings + step->target;

	ks_buf_printf(out, "%-8s %-7s %s", step->flags & KS_STEP_BOX ? "box" : "template", ks_step_name(step->kind), target);
	switch ((enum ks_step_kind)step->kind) {
	case KS_STEP_BIND:
		ks_buf_printf(out, " <- %s %s", strings + step->source,
			      step->flags & KS_STEP_DEVICE ? "device" : step->flags & KS_STEP_RDONLY ? "ro" : "rw");
		break;
	case KS_STEP_SYMLINK:
		ks_buf_printf(out, " -> %s", strings + step->text);
		break;
	case KS_STEP_TMPFS:
		ks_buf_printf(out, " size=%llu inodes=%llu mode=%o", (unsigned long long)step->size,
			      (unsigned long long)step->inodes, step->mode);
		break;
	case KS_STEP_DIR:
		ks_buf_printf(out, " mode=%o", step->mode);
		break;
	case KS_STEP_FILE:
		ks_buf_printf(out, " %u bytes", step->text_len);
		break;
	case KS_STEP_PROC:
	case KS_STEP_DEVPTS:
	case KS_STEP_MASK:
		break;
	}
	ks_buf_char(out, '\n');
}

void ks_plan_print(const struct ks_plan *plan, enum ks_plan_phase phase, struct ks_buf *out)
{
	for (uint32_t i = 0; i < plan->head.step_count; i++)
		if (!!(plan->steps[i].flags & KS_STEP_BOX) == (phase == KS_PLAN_BOX))
			print_step(plan, &plan->steps[i], out);
}

int ks_plan_pack(const struct ks_plan *plan, struct ks_error *err)
{
	struct ks_plan_head head = plan->head;
	size_t steps_len = head.step_count * sizeof(struct ks_step);
	KS_AUTOCLOSE int fd = memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (plan->strings.failed)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	head.strings_len = (uint32_t)plan->strings.len;
	if (fd < 0 || pwrite(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    pwrite(fd, plan->steps, steps_len, sizeof(head)) != (ssize_t)steps_len ||
	    pwrite(fd, plan->strings.data, head.strings_len, (off_t)(sizeof(head) + steps_len)) != (ssize_t)head.strings_len ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return ks_fail_errno(err, KS_E_INTERNAL, errno, "cannot write the plan");
	return KS_TAKE_FD(fd);
}

/* tree.c takes what follows the first slash of a path in the box. What the template has mounted (AGAIN) only a box sees. */
static bool step_is_sound(const struct ks_plan_view *view, const struct ks_step *step)
{
	const uint32_t len = view->head->strings_len;

	return step->kind < KS_COUNT(kind_names) && step->fd >= -1 && step->fd < KS_MSG_FDS && step->target < len &&
	       step->source < len && step->text < len && step->text_len < len - step->text &&
	       view->strings[step->target] == '/' && (step->kind != KS_STEP_BIND || view->strings[step->source] == '/') &&
	       (!(step->flags & KS_STEP_AGAIN) || step->flags & KS_STEP_BOX);
}

static bool view_is_sound(const struct ks_plan_view *view, size_t size)
{
	const struct ks_plan_head *head = view->head;

	if (head->magic != KS_PLAN_MAGIC || head->step_count > KS_PLAN_STEPS || head->map_count > KS_COUNT(head->uid_map) ||
	    head->strings_len == 0 ||
	    size != sizeof(*head) + head->step_count * sizeof(struct ks_step) + head->strings_len ||
	    view->strings[head->strings_len - 1] != '\0' || head->hostname >= head->strings_len ||
	    head->fail_step >= head->strings_len || head->apparmor >= head->strings_len)
		return false;
	for (int i = 0; i < 2; i++)
		if (head->filter[i] % 8 != 0 || head->filter_count[i] > BPF_MAXINSNS || head->filter[i] > head->strings_len ||
		    head->filter_count[i] * sizeof(struct sock_filter) > head->strings_len - head->filter[i])
			return false;
	for (uint32_t i = 0; i < head->step_count; i++)
		if (!step_is_sound(view, &view->steps[i]))
			return false;
	return true;
}

int ks_plan_open(int fd, struct ks_plan_view *ret, struct ks_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(struct ks_plan_head) || st.st_size > (off_t)KS_PLAN_MAX)
		return ks_fail(err, KS_E_INTERNAL, "the plan has a wrong size");
	size_t size = (size_t)st.st_size;
	const char *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return ks_fail_errno(err, KS_E_INTERNAL, errno, "cannot map the plan");
	struct ks_plan_view view = { .head = (const void *)map, .mapped = size };
	view.steps = (const void *)(map + sizeof(*view.head));
	if (view.head->step_count > KS_PLAN_STEPS ||
	    size < sizeof(*view.head) + view.head->step_count * sizeof(struct ks_step))
		goto damaged;
	view.strings = map + sizeof(*view.head) + view.head->step_count * sizeof(struct ks_step);
	if (!view_is_sound(&view, size))
		goto damaged;
	*ret = view;
	return 0;
damaged:
	(void)munmap((void *)(uintptr_t)map, size);
	return ks_fail(err, KS_E_INTERNAL, "the plan is damaged");
}

struct ks_filter ks_plan_filter(const struct ks_plan_view *view, int which)
{
	const void *code = view->strings + view->head->filter[which]; /* aligned: ks_plan_open() has looked */

	return (struct ks_filter){ (struct sock_filter *)(uintptr_t)code, (unsigned short)view->head->filter_count[which] };
}

void ks_plan_close(struct ks_plan_view *view)
{
	(void)munmap((void *)(uintptr_t)view->head, view->mapped);
	*view = (struct ks_plan_view){ 0 };
}

const char *ks_plan_string(const struct ks_plan_view *view, uint32_t offset)
{
	return view->strings + offset;
}

const char *ks_plan_memory_target(const struct ks_plan_view *view)
{
	for (uint32_t i = 0; i < view->head->step_count; i++)
		if (view->steps[i].flags & KS_STEP_SENT ||
		    (view->steps[i].kind == KS_STEP_TMPFS && !(view->steps[i].flags & KS_STEP_BOX)))
			return ks_plan_string(view, view->steps[i].target);
	return NULL;
}

bool ks_plan_fails(const struct ks_plan_view *view, const char *step)
{
#if KS_TEST_HOOKS
	return strcmp(ks_plan_string(view, view->head->fail_step), step) == 0;
#else
	(void)view;
	(void)step;
	return false;
#endif
}
