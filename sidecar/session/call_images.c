/* call_images.c: images of a result are looked at by a worker before they are kept: what is no image of its type, or too large to be
 * shown, is dropped with its reason, and a PNG is encoded again from nothing but its pixels (worker/jobs/image.c). The frame waits
 * meanwhile, and with it its acknowledgement, the code that sent it, and all later frames: the order stays. */
#include <stdio.h>
#include <string.h>

#include "session/call_parts.h"
#include "session/files.h"

static const char *const kinds[] = { "image/png", "image/jpeg", "image/gif", "image/webp" };

static bool is_image(const char *mime)
{
	for (size_t i = 0; i < KS_COUNT(kinds); i++)
		if (strcmp(mime, kinds[i]) == 0)
			return true;
	return false;
}

static void start_next(struct ks_call *call);

static const char *intern(const char *reason)
{
	/* results keep constants only: these are all that the worker may say, and what else it says is not repeated */
	static const char *const known[] = {
		"no PNG", "a damaged PNG", "a PNG with something behind its end", "a PNG without an end", "out of memory",
		"an interlaced PNG of more than 64 MiB", "a PNG of more than 40 million pixels", "an image without pixels",
		"an image of more than 40 million pixels", "no JPEG", "a JPEG without an end", "a JPEG without a size", "no GIF", "no WebP",
	};

	for (size_t i = 0; i < KS_COUNT(known); i++)
		if (strcmp(known[i], reason) == 0)
			return known[i];
	return "refused";
}

static void on_image(struct ks_task *task, struct ks_unpack *result, const struct ks_error *err)
{
	struct ks_call *call = KS_ENTRY(task, struct ks_call, images.task);
	struct ks_image_verdict *verdict = &call->images.verdicts[call->images.count - 1];
	size_t len = 0;

	(void)err;
	verdict->reason = "could not be checked";
	if (result) {
		const char *why = ks_unpack_bytes(result, NULL);
		(void)ks_unpack_int(result); /* width, height: the runner says them, too */
		(void)ks_unpack_int(result);
		const char *bytes = ks_unpack_bytes(result, &len);
		if (ks_unpack_end(result))
			verdict->reason = why[0] ? intern(why) : NULL;
		verdict->again = verdict->reason || len == 0 ? NULL : malloc(len);
		verdict->len = len;
		if (verdict->again)
			memcpy(verdict->again, bytes, len);
		else if (len > 0 && !verdict->reason)
			verdict->reason = "out of memory";
	}
	start_next(call);
}

/* The parts after the last one that was looked at; behind the last of all the frame goes its way. */
static void start_next(struct ks_call *call)
{
	struct ks_call_images *images = &call->images;
	struct ks_error err;

	while (images->next < images->frame.part_count && images->count < KS_COUNT(images->verdicts)) {
		const struct kern_part *part = &images->frame.parts[images->next++];
		if (!is_image(part->key))
			continue;
		struct ks_image_verdict *verdict = &images->verdicts[images->count++];
		*verdict = (struct ks_image_verdict){ .data = part->data, .reason = "could not be checked" };
		images->task = (struct ks_task){ .job.kind = KS_JOB_IMAGE, .done = on_image };
		ks_pack_string(&images->task.job.request, part->key);
		ks_pack_bytes(&images->task.job.request, part->data, part->len);
		if (ks_files_start_exclusive(call->session, &images->task, &err) == 0)
			return;
		ks_job_drop(&images->task.job);
	}
	images->busy = false;
	ks_call_frame_checked(call, &images->frame);
	for (size_t i = 0; i < images->count; i++)
		free(images->verdicts[i].again);
	images->count = 0;
	ks_call_channel_free(call);
}

bool ks_call_check_images(struct ks_call *call, const struct kern_frame *frame)
{
	bool any = false;

	if (frame->type != KERN_FRAME_DISPLAY && frame->type != KERN_FRAME_UPDATE && frame->type != KERN_FRAME_VALUE)
		return false;
	for (size_t i = 0; i < frame->part_count; i++)
		any |= is_image(frame->parts[i].key);
	if (!any)
		return false;
	call->images.busy = true;
	call->images.frame = *frame; /* its parts are those of call->frames, which nothing feeds meanwhile */
	call->images.next = call->images.count = 0;
	start_next(call);
	return true;
}

const char *ks_call_image_verdict(void *arg, const char *mime, const void *data, size_t len, char **ret_data, size_t *ret_len)
{
	struct ks_call *call = arg;

	(void)len;
	if (!is_image(mime))
		return NULL;
	for (size_t i = 0; i < call->images.count; i++) {
		struct ks_image_verdict *verdict = &call->images.verdicts[i];
		if (verdict->data != data)
			continue;
		if (!verdict->reason && verdict->again) {
			*ret_data = KS_TAKE_PTR(verdict->again);
			*ret_len = verdict->len;
		}
		return verdict->reason;
	}
	return "not checked"; /* a plugin made it of something else */
}

void ks_call_images_free(struct ks_call *call)
{
	for (size_t i = 0; i < call->images.count; i++)
		free(call->images.verdicts[i].again);
	call->images.count = 0;
}
