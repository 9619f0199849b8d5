/* The results of a call: the final view, its caps, and frames in the standard form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "plugins/results.h"

static bool json_stand_in(const char *text, size_t len, bool object)
{
	return len > 0 && text[len] == '\0' && text[0] == (object ? '{' : text[0]) && !strstr(text, "NaN");
}

struct seen {
	char text[256];
};

static void note(void *arg, enum ks_result_op op, const struct ks_result *result, bool wait, uint64_t seq)
{
	struct seen *seen = arg;
	size_t at = strlen(seen->text);
	const char *text = result && result->content->data_count ? result->content->data[0].data : "-";

	(void)snprintf(seen->text + at, sizeof(seen->text) - at, "%d:%s%s@%d ", op, text ? text : "?", wait ? "w" : "",
		       (int)seq);
}

static int emit(struct ks_results *results, int kind, const char *id, const char *mime, const char *text)
{
	const struct kern_part part = { mime, text, strlen(text) };
	const struct kern_result result = { .size = sizeof(result),
					    .kind = kind,
					    .id = id,
					    .id_len = id ? strlen(id) : 0,
					    .data = &part,
					    .data_count = 1 };

	return ks_results_emit(results, &result);
}

static const struct ks_result *nth(const struct ks_results *results, int n)
{
	const struct ks_list *node = results->list.next;

	while (n-- > 0)
		node = node->next;
	assert_ptr_not_equal(node, &results->list);
	return (const struct ks_result *)(const void *)node;
}

static void test_results_view(void **state)
{
	(void)state;
	struct ks_results r;
	struct seen seen = { "" };

	ks_results_init(&r);
	r.event = note;
	r.event_arg = &seen;
	r.at_stdout = 10;
	assert_int_equal(emit(&r, KERN_DISPLAY, "a", "text/plain", "one"), 0);
	r.at_stdout = 20;
	r.at_stderr = 5;
	assert_int_equal(emit(&r, KERN_DISPLAY, "a", "text/plain", "two"), 0);
	assert_int_equal(emit(&r, KERN_DISPLAY, NULL, "text/plain", "three"), 0);
	assert_int_equal(emit(&r, KERN_UPDATE, "a", "text/html", "new"), 0);
	assert_int_equal(emit(&r, KERN_UPDATE, "b", "text/html", "nobody"), 0);
	assert_int_equal(r.count, 3);
	assert_string_equal(nth(&r, 0)->content->data[0].data, "new");
	assert_ptr_equal(nth(&r, 0)->content, nth(&r, 1)->content);
	assert_string_equal(nth(&r, 1)->content->data[0].mime, "text/html");
	assert_string_equal(nth(&r, 2)->content->data[0].data, "three");
	assert_int_equal(nth(&r, 0)->at_stdout, 10);
	assert_int_equal(nth(&r, 1)->at_stdout, 20);
	assert_int_equal(nth(&r, 1)->at_stderr, 5);
	assert_int_equal(nth(&r, 2)->seq, 2);
	assert_int_equal(r.bytes, 1 + 1 + 3 + 5);
	assert_int_equal(ks_results_clear(&r, true), 0);
	assert_int_equal(r.count, 3);
	assert_int_equal(emit(&r, KERN_VALUE, NULL, "text/plain", "last"), 0);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.bytes, 4);
	assert_int_equal(ks_results_clear(&r, false), 0);
	assert_int_equal(r.count, 0);
	assert_int_equal(r.bytes, 0);
	assert_string_equal(seen.text, "0:one@0 0:two@1 0:three@2 1:new@3 2:-w@4 3:last@5 2:-@6 ");
	ks_results_free(&r);
}

static void test_results_refused(void **state)
{
	(void)state;
	struct ks_results r;
	char id[KS_RESULT_ID + 2];
	struct kern_part same[2] = { { "text/plain", "a", 1 }, { "text/plain", "b", 1 } };
	struct kern_result twice = { .size = sizeof(twice), .kind = KERN_DISPLAY, .data = same, .data_count = 2 };

	ks_results_init(&r);
	assert_int_equal(emit(&r, 0, NULL, "text/plain", "x"), -1);
	assert_int_equal(emit(&r, 5, NULL, "text/plain", "x"), -1);
	assert_int_equal(emit(&r, KERN_UPDATE, NULL, "text/plain", "x"), -1);
	assert_int_equal(emit(&r, KERN_DISPLAY, "", "text/plain", "x"), -1);
	memset(id, 'i', sizeof(id));
	id[KS_RESULT_ID + 1] = '\0';
	assert_int_equal(emit(&r, KERN_DISPLAY, id, "text/plain", "x"), -1);
	id[KS_RESULT_ID] = '\0';
	assert_int_equal(emit(&r, KERN_DISPLAY, id, "text/plain", "x"), 0);
	assert_int_equal(ks_results_emit(&r, &twice), -1);
	twice.data_count = KS_RESULT_MIMES + 1;
	assert_int_equal(ks_results_emit(&r, &twice), -1);
	assert_int_equal(r.count, 1);
	ks_results_free(&r);
}

static void test_mime_names(void **state)
{
	(void)state;
	static const char *const good[] = { "text/plain", "image/svg+xml", "application/vnd.vegalite.v5+json", "a/b",
					    "X-y/1" };
	static const char *const bad[] = { "",
					   "text",
					   "/",
					   "text/",
					   "/plain",
					   "text/plain; charset=x",
					   "text/pl ain",
					   "a/b/c",
					   "text/pl\xc3\xa4in",
					   "-a/b",
					   "a/+b",
					   "text/\nx" };
	char longest[129] = "a/";

	for (size_t i = 0; i < KS_COUNT(good); i++)
		assert_true(ks_mime_valid(good[i]));
	for (size_t i = 0; i < KS_COUNT(bad); i++)
		assert_false(ks_mime_valid(bad[i]));
	memset(longest + 2, 'b', 126);
	assert_false(ks_mime_valid(longest));
	longest[127] = '\0';
	assert_true(ks_mime_valid(longest));
}

static void test_results_json(void **state)
{
	(void)state;
	struct ks_results r;
	struct kern_part parts[3] = { { "text/plain", "x", 1 },
				      { "application/json", "[NaN]", 5 },
				      { "a/b+json", "[1]", 3 } };
	struct kern_result result = { .size = sizeof(result),
				      .kind = KERN_DISPLAY,
				      .data = parts,
				      .data_count = 3,
				      .metadata = "{\"a\":1}",
				      .metadata_len = 7 };

	ks_results_init(&r);
	assert_int_equal(ks_results_emit(&r, &result), 0); /* nobody can say what is JSON: nothing is kept of it */
	assert_null(nth(&r, 0)->content->data[2].data);
	assert_null(nth(&r, 0)->content->metadata);
	r.json_valid = json_stand_in;
	assert_int_equal(ks_results_emit(&r, &result), 0);
	const struct ks_result_content *content = nth(&r, 1)->content;
	assert_int_equal(content->data_count, 3);
	assert_string_equal(content->data[0].data, "x");
	assert_null(content->data[1].data);
	assert_string_equal(content->data[1].dropped, "not valid JSON");
	assert_string_equal(content->data[2].data, "[1]");
	assert_string_equal(content->metadata, "{\"a\":1}");
	result.metadata = "[1]";
	result.metadata_len = 3;
	assert_int_equal(ks_results_emit(&r, &result), 0);
	assert_string_equal(nth(&r, 2)->content->metadata_dropped, "not valid JSON");
	KS_AUTOFREE char *large = calloc(1, KS_RESULT_METADATA + 1);
	memset(large, '{', KS_RESULT_METADATA + 1);
	result.metadata = large;
	result.metadata_len = KS_RESULT_METADATA;
	assert_int_equal(ks_results_emit(&r, &result), 0);
	assert_int_equal(nth(&r, 3)->content->metadata_len, KS_RESULT_METADATA);
	result.metadata_len++;
	assert_int_equal(ks_results_emit(&r, &result), 0);
	assert_string_equal(nth(&r, 4)->content->metadata_dropped, "larger than 64 KiB");
	ks_results_free(&r);
}

static void test_results_caps(void **state)
{
	(void)state;
	struct ks_results r;
	KS_AUTOFREE char *data = calloc(1, KS_RESULTS_BYTES);
	struct kern_part part = { "image/png", data, KS_RESULTS_BYTES };
	struct kern_result result = { .size = sizeof(result), .kind = KERN_DISPLAY, .data = &part, .data_count = 1 };

	ks_results_init(&r);
	assert_int_equal(ks_results_emit(&r, &result), 0);
	assert_false(r.limit);
	assert_int_equal(r.bytes, KS_RESULTS_BYTES);
	assert_int_equal(emit(&r, KERN_DISPLAY, NULL, "text/plain", "x"), 0);
	assert_true(r.limit);
	assert_null(nth(&r, 1)->content->data[0].data);
	assert_string_equal(nth(&r, 1)->content->data[0].dropped, "the results of the call are larger than 64 MiB");
	assert_int_equal(emit(&r, KERN_DISPLAY, "id", "text/plain", ""), 0); /* not even room for the id */
	assert_int_equal(r.count, 2);
	ks_results_free(&r);

	for (int i = 0; i < KS_RESULTS_MAX; i++)
		assert_int_equal(emit(&r, KERN_DISPLAY, NULL, "text/plain", "x"), 0);
	assert_false(r.limit);
	assert_int_equal(emit(&r, KERN_DISPLAY, NULL, "text/plain", "x"), 0);
	assert_int_equal(r.count, KS_RESULTS_MAX);
	assert_true(r.limit);
	assert_int_equal(emit(&r, KERN_VALUE, NULL, "text/plain", "value"), 0);
	assert_int_equal(emit(&r, KERN_VALUE, NULL, "text/plain", "another"), 0);
	assert_int_equal(r.count, KS_RESULTS_MAX + 1);
	assert_string_equal(nth(&r, KS_RESULTS_MAX)->content->data[0].data, "value");
	ks_results_free(&r);
}

static void test_error_frame(void **state)
{
	(void)state;
	struct ks_results r;
	static const char place[] = "12\0"
				    "5\0"
				    "main.py\0"
				    "f\0"
				    "  x = 1/0",
			  odd[] = "12x\0"
				  "9999999999";
	KS_AUTOFREE char *message = calloc(1, KS_ERROR_MESSAGE + 1);
	struct kern_part parts[6 + KS_ERROR_FRAMES] = { { "name", "ZeroDivisionError", 17 },
							{ "message", message, KS_ERROR_MESSAGE + 1 },
							{ "phase", "run", 3 },
							{ "frame", place, sizeof(place) - 1 },
							{ "frame", odd, sizeof(odd) - 1 },
							{ "unknown", "x", 1 } };
	struct kern_frame frame = { sizeof(frame), KERN_FRAME_ERROR, 0, 1, parts, 6 };

	memset(message, 'm', KS_ERROR_MESSAGE + 1);
	memcpy(message + KS_ERROR_MESSAGE - 1, "\xc3\xa4", 2); /* the cut must not split it */
	ks_results_init(&r);
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_true(r.has_error);
	assert_string_equal(r.error.name, "ZeroDivisionError");
	assert_int_equal(strlen(r.error.message), KS_ERROR_MESSAGE - 1);
	assert_string_equal(r.error.phase, "run");
	assert_null(r.error.traceback);
	assert_null(r.error.cause);
	assert_int_equal(r.error.frame_count, 2);
	assert_int_equal(r.error.frames[0].line, 12);
	assert_int_equal(r.error.frames[0].column, 5);
	assert_string_equal(r.error.frames[0].file, "main.py");
	assert_string_equal(r.error.frames[0].function, "f");
	assert_string_equal(r.error.frames[0].source, "  x = 1/0");
	assert_int_equal(r.error.frames[1].line, 0);
	assert_int_equal(r.error.frames[1].column, 0);
	assert_null(r.error.frames[1].file);
	frame.part_count = 1;
	parts[0].data = "Second";
	parts[0].len = 6;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_string_equal(r.error.name, "Second");
	assert_int_equal(r.error.frame_count, 0);
	for (size_t i = 0; i <= KS_ERROR_FRAMES; i++)
		parts[1 + i] = (struct kern_part){ "frame", place, sizeof(place) - 1 };
	frame.part_count = 1 + KS_ERROR_FRAMES;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_int_equal(r.error.frame_count, KS_ERROR_FRAMES);
	frame.part_count++;
	assert_int_equal(ks_results_frame(&r, &frame), -1);
	parts[0].len = 0;
	frame.part_count = 1;
	assert_int_equal(ks_results_frame(&r, &frame), -1); /* an error without a name */
	ks_results_free(&r);
}

static void test_error_causes(void **state)
{
	(void)state;
	struct ks_results r;
	static const char place[] = "3";
	struct kern_part parts[2 + 3 * (KS_ERROR_CAUSES + 1)] = { { "name", "Outer", 5 }, { "frame", place, 1 } };
	struct kern_frame frame = { sizeof(frame), KERN_FRAME_ERROR, 0, 1, parts, 2 };

	ks_results_init(&r);
	for (int i = 0; i <= KS_ERROR_CAUSES; i++) {
		parts[frame.part_count++] = (struct kern_part){ "cause", "", 0 };
		parts[frame.part_count++] = (struct kern_part){ "name", "Inner", 5 };
		parts[frame.part_count++] = (struct kern_part){ "frame", place, 1 };
	}
	assert_int_equal(ks_results_frame(&r, &frame), -1); /* one too deep */
	frame.part_count -= 3;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	size_t deep = 0;
	for (const struct ks_result_error *e = r.error.cause; e; e = e->cause, deep++) {
		assert_string_equal(e->name, "Inner");
		assert_int_equal(e->frame_count, 1);
		assert_int_equal(e->frames[0].line, 3);
	}
	assert_int_equal(deep, KS_ERROR_CAUSES);
	parts[frame.part_count - 2].len = 0; /* a cause without a name ends the chain */
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	ks_results_free(&r);

	struct kern_error chain[KS_ERROR_CAUSES + 3] = { 0 };
	for (size_t i = 0; i < KS_COUNT(chain); i++)
		chain[i] = (struct kern_error){ .size = sizeof(chain[0]), .name = "E", .name_len = 1,
						.cause = i + 1 < KS_COUNT(chain) ? &chain[i + 1] : NULL };
	assert_int_equal(ks_results_error(&r, chain), 0);
	deep = 0;
	for (const struct ks_result_error *e = r.error.cause; e; e = e->cause)
		deep++;
	assert_int_equal(deep, KS_ERROR_CAUSES);
	ks_results_free(&r);
}

/* What went wrong beside the code does not hide what ended it. */
static void test_error_beside_the_code(void **state)
{
	(void)state;
	static const struct {
		const char *phase, *kept;
	} steps[] = { { "display", "display" }, { "thread", "thread" }, { "run", "run" },
		      { "display", "run" },	{ "thread", "run" },	{ "compile", "compile" } };
	struct ks_results r;

	ks_results_init(&r);
	for (size_t i = 0; i < KS_COUNT(steps); i++) {
		const struct kern_error error = { .size = sizeof(error), .name = "E", .name_len = 1,
						  .phase = steps[i].phase, .phase_len = strlen(steps[i].phase) };
		assert_int_equal(ks_results_error(&r, &error), 0);
		assert_string_equal(r.error.phase, steps[i].kept);
	}
	ks_results_free(&r);
}

static void test_standard_frames(void **state)
{
	(void)state;
	struct ks_results r;
	struct kern_part parts[4] = {
		{ "text/plain", "x", 1 }, { "id", "a", 1 }, { "metadata", "{}", 2 }, { "figure", "", 0 }
	};
	struct kern_frame frame = { sizeof(frame), KERN_FRAME_DISPLAY, 0, 1, parts, 4 };

	ks_results_init(&r);
	r.json_valid = json_stand_in;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_int_equal(nth(&r, 0)->kind, KERN_FIGURE);
	assert_string_equal(nth(&r, 0)->id, "a");
	assert_string_equal(nth(&r, 0)->content->metadata, "{}");
	frame.type = KERN_FRAME_VALUE;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_int_equal(nth(&r, 1)->kind, KERN_VALUE);
	frame.type = KERN_FRAME_UPDATE;
	parts[0].data = "y";
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_string_equal(nth(&r, 0)->content->data[0].data, "y");
	frame.type = KERN_FRAME_STATE;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	frame.type = 200;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_int_equal(r.count, 2);
	frame.type = KERN_FRAME_CLEAR;
	frame.part_count = 0;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_int_equal(r.count, 0);
	parts[0].key = "text/pl ain";
	frame.type = KERN_FRAME_DISPLAY;
	frame.part_count = 1;
	assert_int_equal(ks_results_frame(&r, &frame), -1);
	ks_results_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results_view),	cmocka_unit_test(test_results_refused),
		cmocka_unit_test(test_mime_names),	cmocka_unit_test(test_results_json),
		cmocka_unit_test(test_results_caps),	cmocka_unit_test(test_error_frame),
		cmocka_unit_test(test_error_causes),
		cmocka_unit_test(test_error_beside_the_code),
		cmocka_unit_test(test_standard_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
