/* methods.h: the list of all methods and notifications of the protocol, in contract order, with what each takes,
 * answers and may fail with. Methods that this build does not have are in the list with supported = false. */
#pragma once

#include "proto/field.h"

enum ks_method_kind { KS_REQUEST, KS_NOTIFICATION };
enum ks_method_side { KS_FROM_CLIENT, KS_FROM_SERVER };
enum ks_method_lane { KS_METHOD_CONTROL, KS_METHOD_WORK }; /* control never waits behind work or output */

struct ks_method {
	const char *name;
	enum ks_method_kind kind;
	enum ks_method_side side;
	enum ks_method_lane lane;
	bool supported;
	bool before_initialize;		/* works before `initialize` */
	int since;			/* protocol minor */
	const struct ks_schema *params; /* never NULL; ->size may be 0 */
	const struct ks_schema *result; /* NULL for notifications */
	const enum ks_reason *errors;	/* ended by KS_E_NONE; besides those below zero and overloaded */
	const char *text;
};

/* By index, NULL behind the last. */
const struct ks_method *ks_method_at(size_t i);
const struct ks_method *ks_method_find(const char *name);
/* What a client may call in this build. Else NULL and KS_E_UNKNOWN_METHOD, with a hint or "not in this build".
 * A request method sent without id, or a notification sent with one, is KS_E_INVALID_REQUEST. */
const struct ks_method *ks_method_for_client(const char *name, bool has_id, struct ks_error *err);
