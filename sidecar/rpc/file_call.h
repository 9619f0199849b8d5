/* file_call.h: a request that is one task for a worker, from its params to its reply. A handler makes one, packs what the job needs
 * behind the place, and starts it; the first thing that is wrong becomes the reply, and what follows does nothing. */
#pragma once

#include "rpc/app.h"
#include "session/files.h"
#include "session/place.h"

struct ks_file_call {
	struct ks_task task;
	struct ks_app *app;
	struct ks_request *request;
	const void *params; /* of the request, until the reply */
	struct ks_session *session;
	struct ks_error error; /* reason set: the reply */
	bool path_bytes, to_bytes; /* that path came as bytes: errors of the worker point there */
	char *shown;		   /* the first path, as the session's paths are shown: "" for the workspace */
	struct ks_buf list;	   /* what records have added: the elements of a JSON array */
	/* The members of the reply, from the worker's result (all of which must be read), without braces. */
	void (*write)(struct ks_file_call *call, struct ks_unpack *result, struct ks_buf *json);
};

/* NULL: replied already (no such session). */
struct ks_file_call *ks_file_call_new(struct ks_app *app, struct ks_request *request, const void *params, const char *session_id,
				      enum ks_job_kind kind,
				      void (*write)(struct ks_file_call *call, struct ks_unpack *result, struct ks_buf *json));
/* Packs where a path lies: root, path. `to_write` refuses a read-only mount here already. */
void ks_file_call_place(struct ks_file_call *call, const char *path, const struct ks_text *bytes, const char *pointer, bool to_write);
/* The member "path" or "pathBase64" of something below the first place: such as can be given to the file methods. */
void ks_file_call_write_path(const struct ks_file_call *call, struct ks_buf *json, const char *below, size_t len);
/* The member `key`: call->list as an array, or a blob when it does not fit beside `others` bytes. */
void ks_file_call_write_list(struct ks_file_call *call, struct ks_buf *json, const char *key, size_t others);
/* For what is packed by hand: the job's request. */
struct ks_buf *ks_file_call_pack(struct ks_file_call *call);
void ks_file_call_fail(struct ks_file_call *call, const struct ks_error *err);
void ks_file_call_start(struct ks_file_call *call);
