/* methods.h: the methods that need nothing but the connection and the blob store. */
#pragma once

#include "base/buf.h"
#include "rpc/server.h"
#include "session/blob.h"

/* What `initialize` settled. */
struct ks_limits {
	int64_t runs, queued;
};

/* The parts of the reply to `initialize` that others know. */
enum ks_welcome {
	KS_WELCOME_TOP,		 /* members of the result itself: "host": {…} */
	KS_WELCOME_CAPABILITIES, /* "features": […], "languages": […] */
	KS_WELCOME_LIMITS,	 /* beside maxLineInBytes, maxLineBytes, runs, queued, blobBytes */
};

/* Appends whole members (proto/write.h sets the commas). */
typedef void ks_welcome_fn(void *arg, enum ks_welcome part, struct ks_buf *members);

/* initialize, initialized, ping, rpc/schema (a blob of `blobs` when it does not fit a line). */
void ks_methods_base(struct ks_server *server, struct ks_blobs *blobs);
/* What `initialize` asks for and only the application can do; -1 with err refuses it. */
typedef int ks_check_fn(void *arg, const struct ks_initialize_params *wanted, struct ks_error *err);
void ks_server_set_check(struct ks_server *server, ks_check_fn *fn, void *arg);
void ks_server_set_welcome(struct ks_server *server, ks_welcome_fn *fn, void *arg);
/* Defaults before `initialize`. */
const struct ks_limits *ks_server_limits(const struct ks_server *server);

/* blob/read, blob/write, blob/free. */
void ks_methods_blob(struct ks_server *server, struct ks_blobs *blobs);
/* render. */
void ks_methods_render(struct ks_server *server, struct ks_blobs *blobs);
