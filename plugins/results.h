/* results.h: the results of one call in memory: the final view (updates applied, cleared ones gone), the last error,
 * and an event for each change. All of it came from the box, so counts, sizes and names are checked here; what the data
 * says is a claim. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/list.h"
#include "plugins/kern_plugin.h"

#define KS_RESULTS_MAX 1000		    /* results kept of one call, the value not counted */
#define KS_RESULTS_BYTES ((size_t)64 << 20) /* bytes of data, ids and metadata kept of one call */
#define KS_RESULT_MIMES 32		    /* mime types of one result */
#define KS_RESULT_ID 128
#define KS_RESULT_METADATA 65536
#define KS_ERROR_NAME 256
#define KS_ERROR_MESSAGE 8192
#define KS_ERROR_TRACEBACK 65536
#define KS_ERROR_FRAMES 100
#define KS_ERROR_CAUSES 8 /* how deep */
#define KS_ERROR_FIELD 4096 /* file, function or source line of a frame */

struct ks_result_data {
	char *mime;
	char *data; /* len bytes, then a NUL */
	size_t len;
	const char *dropped; /* not NULL: why there is no data; a constant */
	char blob[33];	     /* for who writes it: the id of the blob that holds it, or "" */
};

/* Shared by all the results that one update has changed. */
struct ks_result_content {
	unsigned refs;
	struct ks_result_data data[KS_RESULT_MIMES];
	size_t data_count;
	char *metadata; /* JSON text of an object, or NULL */
	size_t metadata_len;
	const char *metadata_dropped; /* not NULL: why the metadata is gone; a constant */
};

struct ks_result {
	struct ks_list node;
	int kind; /* KERN_DISPLAY, KERN_VALUE, KERN_FIGURE */
	char *id; /* display id, or NULL */
	size_t id_len;
	struct ks_result_content *content;
	uint64_t seq, at_stdout, at_stderr;
};

struct ks_error_frame {
	char *file, *function, *source; /* NULL: absent */
	uint32_t line, column;		/* 0: absent */
};

struct ks_result_error {
	char *name, *message, *phase, *traceback; /* NULL: absent; long ones are cut */
	struct ks_error_frame *frames;
	size_t frame_count;
	struct ks_result_error *cause; /* what it came from, or NULL; at most KS_ERROR_CAUSES deep */
};

enum ks_result_op { KS_RESULT_DISPLAY, KS_RESULT_UPDATE, KS_RESULT_CLEAR, KS_RESULT_VALUE };

struct ks_results {
	struct ks_list list; /* of struct ks_result, the final view in order */
	size_t count, bytes;
	bool clear_pending; /* clear with wait: the next result clears first */
	bool limit;	    /* something was dropped for one of the limits */
	bool has_error;
	struct ks_result_error error; /* the last one that ended the code, else the last one beside it */
	/* Where the next result stands; the session sets them before each frame. seq grows by one with each event. */
	uint64_t seq, at_stdout, at_stderr;
	/* Is this text one strict JSON value (an object, when `object`)? NULL: nothing that must be JSON is kept. */
	bool (*json_valid)(const char *text, size_t len, bool object);
	/* What is to become of a piece of data before it is kept: a reason to drop it (a constant), or NULL and perhaps other bytes
	 * instead (malloc'ed, the caller's then). `data` is that of the frame. NULL: all of it is kept as it is. */
	const char *(*check)(void *arg, const char *mime, const void *data, size_t len, char **ret_data, size_t *ret_len);
	void *check_arg;
	/* Called for each change, in order, or NULL. `result`: of an update the last one that it changed, of a clear
	 * NULL; `wait` is of a clear. */
	void (*event)(void *arg, enum ks_result_op op, const struct ks_result *result, bool wait, uint64_t seq);
	void *event_arg;
};

void ks_results_init(struct ks_results *results);
void ks_results_free(struct ks_results *results);

/* 0: kept, or dropped for a limit (`limit` is set). -1: makes no sense (kind, id, no data, a bad mime type). */
int ks_results_emit(struct ks_results *results, const struct kern_result *result);
int ks_results_clear(struct ks_results *results, bool wait);
int ks_results_error(struct ks_results *results, const struct kern_error *error);
/* A frame in the standard form of plugins/README.md; unknown types and unknown parts are ignored. */
int ks_results_frame(struct ks_results *results, const struct kern_frame *frame);

/* RFC 6838: type "/" subtype, restricted names, no parameters, at most 127 characters. */
bool ks_mime_valid(const char *mime);
