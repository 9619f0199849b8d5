/* reply.h: forms of replies that several methods have. */
#pragma once

#include "rpc/app.h"

/* {}; a NULL request (a notification) is fine. */
void ks_reply_empty(struct ks_request *request);
/* An object with one array that may be too long for a line, and is a blob then. `head`: the object's beginning, "{" at least. */
void ks_reply_list(struct ks_app *app, struct ks_request *request, const char *head, const char *key, struct ks_buf *list);
