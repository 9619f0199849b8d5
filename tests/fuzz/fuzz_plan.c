/* fuzz_plan.c: a plan that the builder writes from the input must come out of its pack as it went in; then words of
 * the pack are overwritten, any with anything, as the template may find it. What the reader accepts is read as the
 * template and a box read it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static volatile unsigned sink; /* so that every read is done */

static void read_string(const struct ks_plan_view *view, uint32_t offset)
{
	const char *text = ks_plan_string(view, offset);

	must(strlen(text) < view->mapped);
}

static void read_view(const struct ks_plan_view *view)
{
	read_string(view, view->head->hostname);
	read_string(view, view->head->apparmor);
	must(!ks_plan_fails(view, "no such step"));
	must(view->head->map_count <= 4);
	for (int which = 0; which < 2; which++) {
		const struct ks_filter filter = ks_plan_filter(view, which);
		for (size_t i = 0; i < filter.count; i++)
			sink = sink + filter.code[i].code + filter.code[i].k;
	}
	for (uint32_t i = 0; i < view->head->step_count; i++) {
		const struct ks_step *step = &view->steps[i];
		must(ks_step_name(step->kind)[0] != '?');
		must(ks_plan_string(view, step->target)[0] == '/');
		read_string(view, step->target + 1); /* tree.c: relative to the new root */
		read_string(view, step->source);
		if (step->kind == KS_STEP_BIND)
			read_string(view, step->source + 1);
		read_string(view, step->text);
		for (uint32_t k = 0; k < step->text_len; k++)
			sink = sink + (unsigned char)ks_plan_string(view, step->text)[k];
		must(step->fd >= -1 && step->fd < KS_MSG_FDS);
	}
}

static void open_bytes(const char *bytes, size_t size)
{
	struct ks_plan_view view;
	struct ks_error err = { 0 };
	KS_AUTOCLOSE int fd = memfd_create("plan", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	if (ks_plan_open(fd, &view, &err) < 0) {
		must(err.reason == KS_E_INTERNAL && err.text[0]);
		return;
	}
	must(view.mapped == size);
	read_view(&view);
	ks_plan_close(&view);
}

#define PATCH 6 /* where in two bytes, what in four */

/* After each change, so that one that breaks the plan does not hide the next. */
static void check_damaged(int fd, const uint8_t *patches, size_t count)
{
	struct stat st;

	must(fstat(fd, &st) == 0);
	const size_t size = (size_t)st.st_size;
	char *bytes = malloc(size);
	must(bytes != NULL && pread(fd, bytes, size, 0) == (ssize_t)size);
	for (size_t i = 0; i < count; i++, patches += PATCH) {
		const size_t at = (patches[0] | (size_t)patches[1] << 8) % (size - 3);
		memcpy(bytes + at, patches + 2, 4);
		open_bytes(bytes, size);
	}
	open_bytes(bytes, size - 1 - count % size);
	free(bytes);
}

/* ---- the builder ---- */

/* A NUL-terminated piece of the input behind a slash. */
static void take_path(const uint8_t **data, size_t *size, char path[66])
{
	size_t len = *size > 0 ? **data & 63 : 0;

	*data += *size > 0;
	*size -= *size > 0;
	len = len < *size ? len : *size;
	path[0] = '/';
	memcpy(path + 1, *data, len);
	path[len + 1] = '\0';
	*data += len;
	*size -= len;
}

static int add_step(struct ks_plan *plan, unsigned kind, const char *target, const char *text, struct ks_error *err)
{
	switch (kind % 11) {
	case 0:
		return ks_plan_file(plan, target, text, err);
	case 1:
		return ks_plan_symlink(plan, target, text, err);
	case 2:
		return ks_plan_bind(plan, STDERR_FILENO, text, target, kind & 3, -1, err);
	case 3:
		return ks_plan_cover(plan, text, target, err);
	case 4:
		return ks_plan_again(plan, text, target, err);
	case 5:
		return ks_plan_tmpfs(plan, target, kind, kind, kind, err);
	case 6:
		return ks_plan_mask(plan, target, err);
	case 7:
		return ks_plan_place(plan, target, err);
	case 8:
		return ks_plan_set_hostname(plan, text, err);
	case 9:
		return ks_plan_proc(plan, err);
	default:
		return ks_plan_dir(plan, target, kind, err);
	}
}

/* The pack of it. */
static int check_same(const struct ks_plan *plan)
{
	struct ks_plan_view view;
	struct ks_error err;
	KS_AUTOBUF struct ks_buf text = { 0 };
	int fd = ks_plan_pack(plan, &err);

	must(fd >= 0 && ks_plan_open(fd, &view, &err) == 0);
	must(view.head->step_count == plan->head.step_count && view.head->hostname == plan->head.hostname);
	must(memcmp(view.steps, plan->steps, plan->head.step_count * sizeof(struct ks_step)) == 0);
	must(memcmp(view.strings, plan->strings.data, plan->strings.len) == 0);
	read_view(&view);
	ks_plan_close(&view);
	ks_plan_print(plan, KS_PLAN_TEMPLATE, &text);
	ks_plan_print(plan, KS_PLAN_BOX, &text);
	must(!text.failed && (text.len > 0) == (plan->head.step_count > 0));
	return fd;
}

static void build(struct ks_plan *plan, const uint8_t *data, size_t size)
{
	struct sock_filter code[2] = { { 0, 0, 0, 1 }, { 0, 0, 0, 2 } };
	const struct ks_filter filters[2] = { { code, 2 }, { code, 1 } };
	char target[66], text[66];
	struct ks_error err;

	while (size > 0) {
		const unsigned kind = *data++;
		size--;
		take_path(&data, &size, target);
		take_path(&data, &size, text);
		if (kind == 200)
			must(ks_plan_set_filters(plan, filters, &err) == 0);
		else if (add_step(plan, kind, target, text, &err) < 0)
			break;
	}
	must(plan->head.step_count <= KS_PLAN_STEPS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t patches = size > 0 ? data[0] % 32 : 0;
	struct ks_plan *plan = malloc(sizeof(*plan));

	must(plan != NULL);
	if (size < 1 + patches * PATCH) {
		free(plan);
		return 0;
	}
	ks_plan_init(plan, false); /* paths only: nothing is cloned */
	ks_plan_map_ids(plan, size & 65535, size & 65535, 1, 1);
	build(plan, data + 1 + patches * PATCH, size - 1 - patches * PATCH);
	KS_AUTOCLOSE int fd = check_same(plan);
	check_damaged(fd, data + 1, patches);
	ks_plan_free(plan);
	free(plan);
	return 0;
}
