#include "session/outcome_render.h"

#include <string.h>

#include "render/glyph.h"
#include "render/render.h"
#include "session/outcome_json.h"

#define RESULT_CHARS 4000 /* of one result */
#define FILES_SHOWN 20
#define PATH_CHARS 120

/* What can be long. Each gets a fair share of the room: one that floods cannot push another out. */
enum { STDOUT, RESULTS, TRACEBACK, STDERR, SECTIONS };

struct section {
	const char *title; /* a line of ours, or "" */
	const char *data; /* NULL: the results */
	size_t len;
	enum ks_keep keep;
	struct ks_buf text;
	size_t chars;
};

static size_t chars_of(const struct ks_buf *text)
{
	return ks_glyph_count(text->data, text->len);
}

static void end_line(struct ks_buf *text)
{
	if (text->len > 0 && text->data[text->len - 1] != '\n')
		ks_buf_char(text, '\n');
}

/* ---- results ---- */

static bool is_image(const char *mime)
{
	return strncmp(mime, "image/", 6) == 0;
}

/* What says most about a result in text; an image wins over its description. */
static const struct ks_result_data *best_of(const struct ks_result_content *content)
{
	static const char *const order[] = { "text/markdown", "text/plain", "application/json" };

	for (size_t i = 0; i < content->data_count; i++)
		if (is_image(content->data[i].mime) && !content->data[i].dropped)
			return &content->data[i];
	for (size_t k = 0; k < KS_COUNT(order); k++)
		for (size_t i = 0; i < content->data_count; i++)
			if (strcmp(content->data[i].mime, order[k]) == 0 && !content->data[i].dropped)
				return &content->data[i];
	return content->data_count > 0 ? &content->data[0] : NULL;
}

static void write_result(const struct ks_result_data *data, size_t *images, struct ks_buf *text)
{
	if (data->dropped) {
		ks_buf_str(text, "[result left out: ");
		ks_render_word(text, data->mime, strlen(data->mime), PATH_CHARS);
		ks_buf_printf(text, ", %s]", data->dropped);
	} else if (is_image(data->mime)) {
		ks_buf_printf(text, "[image %zu: ", ++*images);
		ks_render_word(text, data->mime, strlen(data->mime), PATH_CHARS);
		ks_buf_printf(text, ", %zu bytes]", data->len);
	} else if (strncmp(data->mime, "text/", 5) == 0 || strcmp(data->mime, "application/json") == 0) {
		ks_render_text(text, data->data, data->len, RESULT_CHARS, KS_KEEP_HEAD);
	} else {
		ks_buf_str(text, "[result: ");
		ks_render_word(text, data->mime, strlen(data->mime), PATH_CHARS);
		ks_buf_printf(text, ", %zu bytes]", data->len);
	}
	end_line(text);
}

static void write_results(const struct ks_call *call, size_t room, struct ks_buf *text)
{
	size_t images = 0, left = call->results.count, used = 0;

	for (struct ks_list *n = call->results.list.next; n != &call->results.list; n = n->next, left--) {
		KS_AUTOBUF struct ks_buf one = { 0 };
		const struct ks_result_data *data = best_of(KS_ENTRY(n, struct ks_result, node)->content);
		if (data)
			write_result(data, &images, &one);
		const size_t chars = chars_of(&one);
		if (used + chars + 64 > room) { /* room for the line that says so */
			ks_buf_printf(text, "[sandbox: %zu more results left out]\n", left > 0 ? left : 1);
			return;
		}
		ks_buf_add(text, one.data, one.len);
		used += chars;
	}
}

/* ---- sections ---- */

static void write_section(const struct ks_call *call, struct section *section, size_t room)
{
	const size_t title = strlen(section->title) + 1; /* and an LF at the end */

	ks_buf_clear(&section->text);
	if (room <= title)
		return;
	if (section->data == NULL) {
		write_results(call, room, &section->text);
	} else if (section->len > 0) {
		ks_buf_str(&section->text, section->title);
		const size_t before = section->text.len;
		ks_render_text(&section->text, section->data, section->len, room - title, section->keep);
		if (section->text.len == before)
			section->text.len = 0; /* nothing that can be seen */
		end_line(&section->text);
	}
	section->chars = chars_of(&section->text);
}

/* The largest share such that no section gets more than it needs, and all together `room`. */
static size_t fair_share(const struct section *sections, size_t room)
{
	size_t share = room / SECTIONS;

	for (int round = 0; round < SECTIONS; round++) {
		size_t used = 0, hungry = 0;
		for (size_t i = 0; i < SECTIONS; i++) {
			used += sections[i].chars <= share ? sections[i].chars : 0;
			hungry += sections[i].chars > share;
		}
		share = hungry ? (room - used) / hungry : room;
	}
	return share;
}

static void write_sections(const struct ks_call *call, struct section *sections, size_t room)
{
	size_t sum = 0;

	for (size_t i = 0; i < SECTIONS; i++) {
		write_section(call, &sections[i], room);
		sum += sections[i].chars;
	}
	if (sum <= room)
		return;
	const size_t share = fair_share(sections, room);
	for (size_t i = 0; i < SECTIONS; i++)
		if (sections[i].chars > share)
			write_section(call, &sections[i], share);
}

/* A traceback is on stderr already, unless that is full of other things. */
static bool wants_traceback(const struct ks_call *call, size_t room)
{
	const struct ks_results *results = &call->results;
	const char *traceback = results->has_error ? results->error.traceback : NULL;
	const struct ks_buf *printed = &call->log[1].kept;

	if (!traceback || !traceback[0])
		return false;
	return printed->len > room / SECTIONS || !memmem(printed->data, printed->len, traceback, strlen(traceback));
}

/* ---- lines of ours ---- */

static void write_verdict(const struct ks_call *call, size_t room, struct ks_buf *out)
{
	const struct ks_outcome *o = &call->outcome;
	char name[8];

	if (o->fault != KS_FAULT_NONE) {
		ks_buf_printf(out, "[sandbox: %s] ", ks_fault_name(o->fault));
		ks_render_word(out, o->message, strlen(o->message), room - 32); /* it may hold a name from the box */
		ks_buf_char(out, '\n');
	} else if (o->signal) {
		ks_buf_printf(out, "[exit code %d, signal %s]\n", o->exit_code, ks_signal_name(o->signal, name));
	} else if (o->exit_code != 0) {
		ks_buf_printf(out, "[exit code %d]\n", o->exit_code);
	}
	if (call->cell && call->cell_status == KS_CELL_DEAD)
		ks_buf_str(out, "[kernel: it has died, and its state with it]\n");
}

static void write_files(const struct ks_call *call, size_t room, struct ks_buf *out)
{
	KS_AUTOBUF struct ks_buf line = { 0 };
	const struct ks_changes *changes = &call->changes;
	size_t i = 0;

	for (; i < changes->count && i < FILES_SHOWN; i++) {
		const struct ks_change *change = &changes->items[i];
		const size_t before = line.len;
		ks_buf_str(&line, i ? ", " : "[files: ");
		ks_render_word(&line, change->path, change->path_len, PATH_CHARS);
		ks_buf_printf(&line, " (%s)", ks_change_name(change->change));
		if (chars_of(&line) + 24 > room) {
			line.len = before;
			break;
		}
	}
	if (i < changes->count || changes->truncated)
		ks_buf_printf(&line, "%s%zu%s more", i ? ", and " : "[files: ", changes->count - i, changes->truncated ? " or" : "");
	if (changes->count > 0)
		ks_buf_str(&line, "]\n");
	ks_buf_add(out, line.data, line.len);
}

static void write_rest(const struct ks_call *call, size_t room, struct ks_buf *out)
{
	if (call->outcome.truncated)
		ks_buf_printf(out, "[sandbox: over the cap on output: %llu bytes of stdout and %llu of stderr are gone]\n",
			      (unsigned long long)(call->log[0].total - call->log[0].kept.len),
			      (unsigned long long)(call->log[1].total - call->log[1].kept.len));
	write_files(call, room, out);
}

void ks_outcome_render(const struct ks_call *call, size_t max_chars, struct ks_buf *out)
{
	KS_AUTOBUF struct ks_buf verdict = { 0 }, rest = { 0 };
	const char *traceback = call->results.has_error ? call->results.error.traceback : NULL;
	struct section sections[SECTIONS] = {
		[STDOUT] = { .title = "", .data = call->log[0].kept.len ? call->log[0].kept.data : "", .len = call->log[0].kept.len },
		[RESULTS] = { .title = "" },
		[TRACEBACK] = { .title = "[traceback]\n", .data = "", .keep = KS_KEEP_TAIL },
		[STDERR] = { .title = "[stderr]\n", .data = call->log[1].kept.len ? call->log[1].kept.data : "",
			     .len = call->log[1].kept.len, .keep = KS_KEEP_TAIL },
	};

	write_verdict(call, max_chars / 2, &verdict);
	write_rest(call, max_chars / 4, &rest);
	const size_t ours = chars_of(&verdict) + chars_of(&rest);
	const size_t room = max_chars > ours ? max_chars - ours : 0;
	if (wants_traceback(call, room)) {
		sections[TRACEBACK].data = traceback;
		sections[TRACEBACK].len = strlen(traceback);
	}
	write_sections(call, sections, room);
	ks_buf_add(out, verdict.data, verdict.len);
	const size_t before = out->len;
	for (size_t i = 0; i < SECTIONS; i++) {
		ks_buf_add(out, sections[i].text.data, sections[i].text.len);
		out->failed |= sections[i].text.failed;
		ks_buf_free(&sections[i].text);
	}
	if (out->len == before && verdict.len == 0)
		ks_buf_str(out, "[no output, exit code 0]\n");
	ks_buf_add(out, rest.data, rest.len);
	out->failed |= verdict.failed | rest.failed;
}
