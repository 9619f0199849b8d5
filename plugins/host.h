/* host.h: the services of struct kern_host as a plugin sees them, private to this directory. */
#pragma once

#include "plugins/loader.h"

/* One call into a plugin. `api` comes first: the plugin hands its address back. */
struct ks_plugin_host {
	struct kern_host api;
	const char *plugin_name;
	struct ks_error *err;
	bool failed;		      /* err is filled: the call fails whatever the plugin returns */
	struct ks_prepared *prepared; /* in prepare only */
	size_t words_max, text_bytes, file_bytes;
	struct ks_results *results; /* in result only */
};

void ks_plugin_host_init(struct ks_plugin_host *host, const char *plugin_name, struct ks_error *err);
/* [A-Za-z0-9_][A-Za-z0-9._-]{0,63} */
bool ks_plugin_file_name_valid(const char *name);
