/* results.c: keeps what a call has shown. Counts and bytes have caps; a mime type that is over one is dropped with its
 * reason and the rest of the result stays. */
#include "results.h"

#include <string.h>

static const char too_many_bytes[] = "the results of the call are larger than 64 MiB";
static const char not_json[] = "not valid JSON";

bool ks_mime_valid(const char *mime)
{
	static const char more[] = "!#$&-^_.+";
	size_t len = strlen(mime), slash = strcspn(mime, "/");

	if (len > 127 || slash == 0 || slash + 1 >= len)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = mime[i];
		bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		/* RFC 6838 section 4.2: each of the two names begins with a letter or a digit. */
		if (!alnum && i != slash && (i == 0 || i == slash + 1 || !strchr(more, c)))
			return false;
	}
	return true;
}

static bool is_json(const char *mime)
{
	size_t len = strlen(mime);

	return strcmp(mime, "application/json") == 0 || (len > 5 && strcmp(mime + len - 5, "+json") == 0);
}

/* len bytes and a NUL; NULL when memory is out. */
static char *copy(const void *data, size_t len)
{
	char *text = malloc(len + 1);

	if (!text)
		return NULL;
	if (len > 0)
		memcpy(text, data, len);
	text[len] = '\0';
	return text;
}

/* At most `max` bytes, and no UTF-8 sequence is split by the cut. */
static char *copy_cut(const char *data, size_t len, size_t max)
{
	if (!data)
		return NULL;
	if (len > max) {
		len = max;
		while (len > 0 && max - len < 3 && ((unsigned char)data[len] & 0xc0) == 0x80)
			len--;
	}
	return copy(data, len);
}

static void content_unref(struct ks_results *results, struct ks_result_content *content)
{
	if (!content || --content->refs > 0)
		return;
	for (size_t i = 0; i < content->data_count; i++) {
		results->bytes -= content->data[i].len;
		free(content->data[i].mime);
		free(content->data[i].data);
	}
	results->bytes -= content->metadata_len;
	free(content->metadata);
	free(content);
}

static void result_free(struct ks_results *results, struct ks_result *result)
{
	ks_list_remove(&result->node);
	content_unref(results, result->content);
	results->bytes -= result->id_len;
	free(result->id);
	free(result);
	results->count--;
}

static void error_clear(struct ks_result_error *error)
{
	for (size_t i = 0; i < error->frame_count; i++) {
		free(error->frames[i].file);
		free(error->frames[i].function);
		free(error->frames[i].source);
	}
	free(error->frames);
	free(error->name);
	free(error->message);
	free(error->phase);
	free(error->traceback);
	*error = (struct ks_result_error){ 0 };
}

static void error_free(struct ks_result_error *error)
{
	struct ks_result_error *cause = error->cause;

	error_clear(error);
	while (cause) {
		struct ks_result_error *next = cause->cause;
		error_clear(cause);
		free(cause);
		cause = next;
	}
}

static void drop_all(struct ks_results *results)
{
	while (!ks_list_empty(&results->list))
		result_free(results, KS_ENTRY(results->list.next, struct ks_result, node));
}

void ks_results_init(struct ks_results *results)
{
	*results = (struct ks_results){ 0 };
	ks_list_init(&results->list);
}

void ks_results_free(struct ks_results *results)
{
	drop_all(results);
	error_free(&results->error);
	ks_results_init(results);
}

static bool json_valid(const struct ks_results *results, const char *text, size_t len, bool object)
{
	return results->json_valid && results->json_valid(text, len, object);
}

static void set_datum(struct ks_results *results, struct ks_result_data *to, const struct kern_part *given)
{
	struct kern_part own = *given;
	const struct kern_part *from = &own;
	KS_AUTOFREE char *other = NULL;

	to->dropped = results->check ? results->check(results->check_arg, to->mime, given->data, given->len, &other, &own.len) : NULL;
	if (to->dropped)
		return;
	if (other)
		own.data = other;
	if (from->len > KS_RESULTS_BYTES - results->bytes) {
		to->dropped = too_many_bytes;
		results->limit = true;
		return;
	}
	to->data = copy(from->data, from->len);
	if (!to->data) {
		to->dropped = "out of memory";
		return;
	}
	if (is_json(to->mime) && !json_valid(results, to->data, from->len, false)) {
		free(to->data);
		to->data = NULL;
		to->dropped = not_json;
		return;
	}
	to->len = from->len;
	results->bytes += from->len;
}

static void set_metadata(struct ks_results *results, struct ks_result_content *content, const struct kern_result *from)
{
	if (!from->metadata)
		return;
	if (from->metadata_len > KS_RESULT_METADATA) {
		content->metadata_dropped = "larger than 64 KiB";
		return;
	}
	if (from->metadata_len > KS_RESULTS_BYTES - results->bytes) {
		content->metadata_dropped = too_many_bytes;
		results->limit = true;
		return;
	}
	char *text = copy(from->metadata, from->metadata_len);
	if (!text || !json_valid(results, text, from->metadata_len, true)) {
		content->metadata_dropped = text ? not_json : "out of memory";
		free(text);
		return;
	}
	content->metadata = text;
	content->metadata_len = from->metadata_len;
	results->bytes += from->metadata_len;
}

/* One reference, the caller's; NULL when memory is out. */
static struct ks_result_content *content_new(struct ks_results *results, const struct kern_result *from)
{
	struct ks_result_content *content = calloc(1, sizeof(*content));

	if (!content)
		return NULL;
	content->refs = 1;
	for (size_t i = 0; i < from->data_count; i++) {
		struct ks_result_data *to = &content->data[i];
		to->mime = strdup(from->data[i].key);
		if (!to->mime) {
			content_unref(results, content);
			return NULL;
		}
		content->data_count++;
		set_datum(results, to, &from->data[i]);
	}
	set_metadata(results, content, from);
	return content;
}

static bool sound(const struct kern_result *result)
{
	if (result->kind < KERN_DISPLAY || result->kind > KERN_UPDATE || result->data_count > KS_RESULT_MIMES)
		return false;
	if (result->id ? result->id_len == 0 || result->id_len > KS_RESULT_ID : result->kind == KERN_UPDATE)
		return false;
	for (size_t i = 0; i < result->data_count; i++) {
		if (!ks_mime_valid(result->data[i].key))
			return false;
		for (size_t k = 0; k < i; k++)
			if (strcmp(result->data[i].key, result->data[k].key) == 0)
				return false;
	}
	return true;
}

static void tell(struct ks_results *results, enum ks_result_op op, const struct ks_result *result, bool wait)
{
	uint64_t seq = results->seq++;

	if (results->event)
		results->event(results->event_arg, op, result, wait, seq);
}

static int update(struct ks_results *results, const struct kern_result *from)
{
	struct ks_result_content *content = content_new(results, from);
	const struct ks_result *last = NULL;

	if (!content)
		return -1;
	for (struct ks_list *n = results->list.next; n != &results->list; n = n->next) {
		struct ks_result *result = KS_ENTRY(n, struct ks_result, node);
		if (!result->id || result->id_len != from->id_len || memcmp(result->id, from->id, from->id_len) != 0)
			continue;
		content_unref(results, result->content);
		result->content = content;
		content->refs++;
		last = result;
	}
	if (last)
		tell(results, KS_RESULT_UPDATE, last, false);
	content_unref(results, content);
	return 0;
}

static bool full(struct ks_results *results, const struct kern_result *from)
{
	size_t id_len = from->id ? from->id_len : 0;

	if (id_len <= KS_RESULTS_BYTES - results->bytes &&
	    (results->count < KS_RESULTS_MAX || (from->kind == KERN_VALUE && results->count == KS_RESULTS_MAX)))
		return false;
	results->limit = true;
	return true;
}

int ks_results_emit(struct ks_results *results, const struct kern_result *from)
{
	if (!sound(from))
		return -1;
	if (from->kind == KERN_UPDATE)
		return update(results, from);
	if (results->clear_pending) {
		results->clear_pending = false;
		drop_all(results);
	}
	if (full(results, from))
		return 0;
	struct ks_result *result = calloc(1, sizeof(*result));
	if (!result)
		return -1;
	ks_list_append(&results->list, &result->node);
	results->count++;
	result->kind = from->kind;
	result->seq = results->seq;
	result->at_stdout = results->at_stdout;
	result->at_stderr = results->at_stderr;
	if (from->id) {
		result->id = copy(from->id, from->id_len);
		result->id_len = result->id ? from->id_len : 0;
		results->bytes += result->id_len;
	}
	result->content = content_new(results, from);
	if ((from->id && !result->id) || !result->content) {
		result_free(results, result);
		return -1;
	}
	tell(results, from->kind == KERN_VALUE ? KS_RESULT_VALUE : KS_RESULT_DISPLAY, result, false);
	return 0;
}

int ks_results_clear(struct ks_results *results, bool wait)
{
	results->clear_pending = wait;
	if (!wait)
		drop_all(results);
	tell(results, KS_RESULT_CLEAR, NULL, wait);
	return 0;
}

static bool sound_error(const struct kern_error *error)
{
	return error->name && error->name_len > 0 && error->frame_count <= KS_ERROR_FRAMES;
}

/* Without its cause. What memory is too short for is absent. */
static void error_copy(struct ks_result_error *error, const struct kern_error *from)
{
	error->name = copy_cut(from->name, from->name_len, KS_ERROR_NAME);
	error->message = copy_cut(from->message, from->message_len, KS_ERROR_MESSAGE);
	error->phase = copy_cut(from->phase, from->phase_len, KS_ERROR_NAME);
	error->traceback = copy_cut(from->traceback, from->traceback_len, KS_ERROR_TRACEBACK);
	if (from->frame_count == 0)
		return;
	error->frames = calloc(from->frame_count, sizeof(*error->frames));
	for (; error->frames && error->frame_count < from->frame_count; error->frame_count++) {
		const struct kern_error_frame *f = &from->frames[error->frame_count];
		error->frames[error->frame_count] = (struct ks_error_frame){
			copy_cut(f->file, f->file_len, KS_ERROR_FIELD),
			copy_cut(f->function, f->function_len, KS_ERROR_FIELD),
			copy_cut(f->source, f->source_len, KS_ERROR_FIELD),
			f->line,
			f->column,
		};
	}
}

/* Happened beside the code, which went on: a form of a result that failed, a thread that ended. */
static bool beside(const char *phase, size_t len)
{
	return (len == 7 && memcmp(phase, "display", 7) == 0) || (len == 6 && memcmp(phase, "thread", 6) == 0);
}

int ks_results_error(struct ks_results *results, const struct kern_error *from)
{
	struct ks_result_error *error = &results->error;
	const char *kept = error->phase ? error->phase : "";

	if (!sound_error(from))
		return -1;
	if (results->has_error && from->phase && beside(from->phase, from->phase_len) && !beside(kept, strlen(kept)))
		return 0;
	error_free(error);
	results->has_error = true;
	error_copy(error, from);
	for (int deep = 0; deep < KS_ERROR_CAUSES && from->cause && sound_error(from->cause); deep++) {
		from = from->cause;
		error->cause = calloc(1, sizeof(*error->cause));
		if (!error->cause)
			break;
		error = error->cause;
		error_copy(error, from);
	}
	return 0;
}

/* ---- frames in the standard form ---- */

static bool key_is(const struct kern_part *part, const char *key)
{
	return strcmp(part->key, key) == 0;
}

static int show(struct ks_results *results, const struct kern_frame *frame)
{
	struct kern_part data[KS_RESULT_MIMES];
	struct kern_result result = { .size = sizeof(result), .data = data };

	result.kind = frame->type == KERN_FRAME_DISPLAY	 ? KERN_DISPLAY
		      : frame->type == KERN_FRAME_UPDATE ? KERN_UPDATE
							 : KERN_VALUE;
	for (size_t i = 0; i < frame->part_count; i++) {
		const struct kern_part *part = &frame->parts[i];
		if (strchr(part->key, '/')) {
			if (result.data_count == KS_RESULT_MIMES)
				return -1;
			data[result.data_count++] = *part;
		} else if (key_is(part, "id")) {
			result.id = part->data;
			result.id_len = part->len;
		} else if (key_is(part, "metadata")) {
			result.metadata = part->data;
			result.metadata_len = part->len;
		} else if (key_is(part, "figure") && result.kind == KERN_DISPLAY) {
			result.kind = KERN_FIGURE;
		}
	}
	return ks_results_emit(results, &result);
}

/* The next field of a frame part: up to a NUL, or the rest. */
static const char *field(const char **at, const char *end, size_t *ret_len)
{
	const char *start = *at, *stop = start < end ? memchr(start, '\0', (size_t)(end - start)) : NULL;

	if (!stop)
		stop = end;
	*ret_len = (size_t)(stop - start);
	*at = stop < end ? stop + 1 : end;
	return start;
}

/* Decimal, 0 for anything else. */
static uint32_t number(const char *text, size_t len)
{
	uint32_t value = 0;

	if (len > 9)
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		value = value * 10 + (uint32_t)(text[i] - '0');
	}
	return value;
}

/* line NUL column NUL file NUL function NUL source */
static struct kern_error_frame read_frame(const struct kern_part *part)
{
	const char *at = part->data, *end = at + part->len, *text;
	struct kern_error_frame f = { 0 };
	size_t len;

	text = field(&at, end, &len);
	f.line = number(text, len);
	text = field(&at, end, &len);
	f.column = number(text, len);
	f.file = field(&at, end, &f.file_len);
	f.function = field(&at, end, &f.function_len);
	f.source = field(&at, end, &f.source_len);
	f.file = f.file_len ? f.file : NULL;
	f.function = f.function_len ? f.function : NULL;
	f.source = f.source_len ? f.source : NULL;
	return f;
}

static void set_field(struct kern_error *error, const struct kern_part *part)
{
	const struct {
		const char *key;
		const char **text;
		size_t *len;
	} fields[] = {
		{ "name", &error->name, &error->name_len },
		{ "message", &error->message, &error->message_len },
		{ "phase", &error->phase, &error->phase_len },
		{ "traceback", &error->traceback, &error->traceback_len },
	};

	for (size_t i = 0; i < KS_COUNT(fields); i++) {
		if (key_is(part, fields[i].key)) {
			*fields[i].text = part->data;
			*fields[i].len = part->len;
		}
	}
}

/* The parts of an error; "cause" begins those of the one that it came from. */
static int fail_frame(struct ks_results *results, const struct kern_frame *frame)
{
	struct kern_error_frame frames[KS_ERROR_FRAMES];
	struct kern_error errors[1 + KS_ERROR_CAUSES] = { { .size = sizeof(errors[0]), .frames = frames } };
	struct kern_error *error = errors;
	size_t used = 0;

	for (size_t i = 0; i < frame->part_count; i++) {
		const struct kern_part *part = &frame->parts[i];
		if (key_is(part, "cause")) {
			if (error == &errors[KS_ERROR_CAUSES])
				return -1;
			error->cause = error + 1;
			error++;
			*error = (struct kern_error){ .size = sizeof(*error), .frames = &frames[used] };
		} else if (key_is(part, "frame")) {
			if (used == KS_ERROR_FRAMES)
				return -1;
			frames[used++] = read_frame(part);
			error->frame_count++;
		} else {
			set_field(error, part);
		}
	}
	return ks_results_error(results, errors);
}

int ks_results_frame(struct ks_results *results, const struct kern_frame *frame)
{
	switch (frame->type) {
	case KERN_FRAME_DISPLAY:
	case KERN_FRAME_UPDATE:
	case KERN_FRAME_VALUE:
		return show(results, frame);
	case KERN_FRAME_CLEAR:
		return ks_results_clear(results, frame->part_count > 0 && key_is(&frame->parts[0], "wait"));
	case KERN_FRAME_ERROR:
		return fail_frame(results, frame);
	default:
		return 0;
	}
}
